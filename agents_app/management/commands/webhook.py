"""Tests a payload against the filters of agents without storing it."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, decision_rows, find_tenant
from agents_app.errors import NotFound, Refused
from agents_app.models import Tenant
from agents_app.names import did_you_mean
from agents_app.webhooks import EVENT_HEADERS, IndexedSource, dry_run_delivery, read_source
from agents_app.webhooks.providers import MatchResult


class Command(DroverCommand):
    help = "Dry run: show how a payload is parsed and which agents it would start."
    examples = (
        (
            "webhook test issue.json --source github --event issues",
            "Which agents match, and why others do not.",
        ),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        test = verbs.add_parser(
            "test", help="Test a payload; nothing is stored, signatures are not checked."
        )
        test.add_argument("file", metavar="FILE", type=Path, help="File with the request body.")
        test.add_argument(
            "--source", default="", help="Webhook source; required if there are several."
        )
        test.add_argument(
            "--event", default="", help="Event name for github and sentry: issues, push, ..."
        )
        test.add_argument(
            *("--header", "-H"),
            action="append",
            default=[],
            metavar="NAME: VALUE",
            help="Additional header.",
        )
        self.add_common(test)

    def handle(self, *, file: Path, tenant: str, json: bool, **options: Any) -> None:
        owner = find_tenant(tenant)
        source = _find_source(owner, options["source"])
        headers = dict(_header(line) for line in options["header"])
        if options["event"] and source.kind in EVENT_HEADERS:
            headers[EVENT_HEADERS[source.kind]] = options["event"]
        (result,) = dry_run_delivery([source], headers, file.read_bytes(), self.now)
        self._say(source, result.match, json=json)

    def _say(self, source: IndexedSource, match: MatchResult, *, json: bool) -> None:
        agents = [
            {"agent": d.agent, "matched": d.matched, "reason": d.reason} for d in match.decisions
        ]
        if json:
            context = match.context.as_dict() if match.context else None
            facts = {"source": source.name, "outcome": match.outcome, "reason": match.reason}
            self.screen.json({**facts, "context": context, "agents": agents})
            return
        reason = f": {match.reason}" if match.reason else ""
        self.screen.say(f"{source.name} ({source.kind}): {match.outcome}{reason}")
        if match.outcome == "ignored" and source.kind in EVENT_HEADERS:
            self.remark("name the event with --event; the sender names it in a header")
        for name, value in (match.context.as_dict() if match.context else {}).items():
            self.screen.say(f"  {name:12} {value}")
        if agents:
            self.screen.table(("agent", "decision", "reason"), decision_rows(agents))


def _find_source(tenant: Tenant, name: str) -> IndexedSource:
    rows = {row.name: row for row in tenant.webhook_sources.filter(removed_at__isnull=True)}
    if not rows:
        raise NotFound("there are no webhook sources: add [webhooks.<name>] to config.toml")
    if not name and len(rows) > 1:
        raise Refused(f"name the source with --source: {', '.join(sorted(rows))}")
    row = rows.get(name) if name else next(iter(rows.values()))
    if row is None:
        raise NotFound(f"there is no webhook source {name!r}{did_you_mean(name, rows)}")
    source = read_source(row, ())
    if source is None:
        raise Refused(f"the settings of the source {row.name!r} are invalid")
    return source


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise Refused(f"--header {line!r}: expected NAME: VALUE")
    return name.strip().lower(), value.strip()

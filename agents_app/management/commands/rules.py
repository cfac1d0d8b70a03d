"""Lists and tests the rules of scheduler.rules, and silences their messages."""

import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_tenant
from agents_app.cli import rules as screens
from agents_app.clock import HOST_ZONE, local
from agents_app.console import seconds_of
from agents_app.errors import Refused
from agents_app.models import Tenant
from agents_app.rules.engine import (
    DryRunResult,
    book_of,
    dry_run_rules,
    end_silence,
    file_label,
    indicator,
    rule_lines,
    silence_as_dict,
    silence_text,
    source_of,
    start_silence,
    unread_file_notice,
)
from agents_app.rules.language import FILE_NAME, parse_source, read_source, rules_file
from agents_app.triggers import moment_of


class Command(DroverCommand):
    help = "List rules, test them in a dry run, or silence their messages."
    examples = (
        ("rules list", "State, last and next evaluation of each rule."),
        ("rules test --file draft.rules", "What each rule of the file would do now."),
        ("rules silence on --for 2h", "Silence messages of rules for two hours."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        listing = verbs.add_parser("list", help="List rules with state, last and next evaluation.")
        test = verbs.add_parser("test", help="Dry run: show what would fire now.")
        test.add_argument("--file", metavar="PATH", help=f"File to test instead of {FILE_NAME}.")
        quiet = verbs.add_parser(
            "silence", help="Silence messages of rules; other actions continue."
        )
        quiet.add_argument(
            "switch", nargs="?", choices=("on", "off"), help="Without it: show the state."
        )
        quiet.add_argument("--for", metavar="DURATION", dest="span", default="", help="2h")
        quiet.add_argument("--until", metavar="TIME", default="", help="tomorrow, 17:00")
        for verb in (listing, test, quiet):
            self.add_common(verb)

    def handle(self, *, verb: str, tenant: str, json: bool, **options: Any) -> None:
        owner = find_tenant(tenant)
        if verb == "test":
            self._test(owner, options["file"], json=json)
        elif verb == "silence":
            self._silence(owner, json=json, **options)
        else:
            self._list(owner, json=json)

    # --- list -------------------------------------------------------------------------------

    def _list(self, tenant: Tenant, *, json: bool) -> None:
        lines, book, now = rule_lines(tenant), book_of(tenant), self.now
        shown = indicator(tenant.name)
        if json:
            self.screen.json(
                {
                    "indicator": shown.text,
                    "rules": [line.as_dict for line in lines],
                    "errors": book.errors,
                    "disabled": book.disabled_at is not None,
                    "silence": silence_as_dict(book, now),
                }
            )
            return
        if lines:
            self.screen.table(
                screens.STATE_COLUMNS, [screens.state_row(line, now) for line in lines]
            )
        self._errors(book.errors, file_label(tenant))
        if book.disabled_at:
            self.screen.say(f"rules disabled: {book.crash}; save the file again, or restart Drover")
        if book.is_silent(now):
            self.screen.say(_silence_text(book, now))
        unread = "" if lines else unread_file_notice(tenant, book)
        self.screen.say(f"{shown.text}: {unread or shown.meaning}")

    # --- test -------------------------------------------------------------------------------

    def _test(self, tenant: Tenant, path: str | None, *, json: bool) -> None:
        now, place = self.now, Path(path) if path else _rules_file(tenant)
        source = read_source(place) if path else source_of(tenant)
        if path and not source.fingerprint:
            raise Refused(f"there is no file {place}")
        rules = dry_run_rules(tenant, parse_source(source).rules, now)
        if json:
            described = [one.as_dict for one in rules]
            ok = not source.errors
            self.screen.json({"ok": ok, "file": place, "rules": described, "errors": source.errors})
        else:
            self._print_test(rules, place, tenant, now)
            self._errors(source.errors, place.name)
        if source.errors:
            sys.exit(1)

    def _print_test(
        self, rules: list[DryRunResult], file: Path, tenant: Tenant, now: datetime
    ) -> None:
        if rules:
            rows = [screens.test_row(one, now) for one in rules]
            self.screen.table(screens.TEST_COLUMNS, rows)
        else:
            self.screen.say(f"no rules in {file} for {tenant}")
        for one in rules:
            for warning in one.warnings:
                self.screen.say(f"{file.name}:{one.rule.line}: warning: {warning}")

    def _errors(self, errors: list[dict[str, Any]], file: str) -> None:
        for error in errors:
            for line in screens.error_text(error, file):
                self.screen.say(line)

    # --- silence ----------------------------------------------------------------------------

    def _silence(self, tenant: Tenant, *, json: bool, switch: str | None, **when: str) -> None:
        now = self.now
        if switch == "on":
            start_silence(tenant, self.by, now, _end(when["span"], when["until"], now))
        elif when["span"] or when["until"]:
            raise Refused("--for and --until need `silence on`, for example: silence on --for 2h")
        elif switch == "off":
            end_silence(tenant, self.by, now)
        book = book_of(tenant)
        self.result(_silence_text(book, now), silence_as_dict(book, now), json=json)


def _rules_file(tenant: Tenant) -> Path:
    project = tenant.project_directory
    return rules_file(project) if project else Path(FILE_NAME)


def _end(span: str, until: str, now: datetime) -> datetime | None:
    if span and until:
        raise Refused("use either --for or --until")
    if span:
        try:
            return now + timedelta(seconds=seconds_of(span, "--for"))
        except OverflowError:
            raise Refused(f"--for {span}: ends after the year 9999") from None
    return moment_of("--until", until, now, ZoneInfo(HOST_ZONE)) if until else None


def _silence_text(book: Any, now: datetime) -> str:
    return silence_text(book, now, local(book.silent_until) if book.silent_until else "")

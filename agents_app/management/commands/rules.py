"""Shows the rules of scheduler.rules, tries them without doing anything, and silences them."""

import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from django.core.management.base import CommandParser

from agents_app.cli import DroverCommand, find_tenant, seconds_of
from agents_app.cli import rules as screens
from agents_app.clock import HOST_ZONE, local
from agents_app.conf import CONF
from agents_app.errors import Refused
from agents_app.models import Tenant
from agents_app.rules.engine import (
    DryRunResult,
    book_of,
    dry_run_rules,
    end_silence,
    indicator,
    rule_lines,
    silence_as_dict,
    silence_text,
    source_of,
    start_silence,
    unread_file_notice,
)
from agents_app.rules.language import FILE_NAME, parse_source, read_source
from agents_app.triggers import moment_of


class Command(DroverCommand):
    help = "See the state of the rules, try them without doing anything, or silence them."
    examples = (
        ("rules list", "Each rule: when it was looked at last, what came of it, when it is next."),
        ("rules test --file draft.rules", "What these would do now, and why not."),
        ("rules silence on --for 2h", "Rules send no messages for two hours."),
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
        listing = verbs.add_parser("list", help="Each rule: when it was looked at, and what next.")
        test = verbs.add_parser("test", help="What would fire now, and why not; nothing is done.")
        test.add_argument("--file", metavar="PATH", help=f"Another file than {FILE_NAME}.")
        quiet = verbs.add_parser("silence", help="Rules send no messages; all else goes on.")
        quiet.add_argument("switch", nargs="?", choices=("on", "off"), help="Else: how it is.")
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
        self._errors(book.errors, FILE_NAME)
        if book.disabled_at:
            self.screen.say(f"not obeyed: {book.crash}; save the file again, or restart Drover")
        if book.is_silent(now):
            self.screen.say(_silence_said(book, now))
        unread = "" if lines else unread_file_notice(tenant, book)
        self.screen.say(f"{shown.text}: {unread or shown.meaning}")

    # --- test -------------------------------------------------------------------------------

    def _test(self, tenant: Tenant, path: str | None, *, json: bool) -> None:
        now, place = self.now, Path(path) if path else CONF.project / FILE_NAME
        source = read_source(place) if path else source_of(tenant)
        if path and not source.fingerprint:
            raise Refused(f"there is no file {place}")
        rules = dry_run_rules(tenant, parse_source(source).rules, now)
        if json:
            told = [one.as_dict for one in rules]
            ok = not source.errors
            self.screen.json({"ok": ok, "file": place, "rules": told, "errors": source.errors})
        else:
            self._tested(rules, place, tenant, now)
            self._errors(source.errors, place.name)
        if source.errors:
            sys.exit(1)

    def _tested(self, rules: list[DryRunResult], file: Path, tenant: Tenant, now: datetime) -> None:
        if rules:
            rows = [screens.test_row(one, now) for one in rules]
            self.screen.table(screens.TEST_COLUMNS, rows)
        else:
            self.screen.say(f"there are no rules in {file} for {tenant}")
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
            raise Refused("--for and --until say when a silence ends: write silence on --for 2h")
        elif switch == "off":
            end_silence(tenant, self.by, now)
        book = book_of(tenant)
        said = silence_as_dict(book, now)
        self.result(_silence_said(book, now), said, json=json)


def _end(span: str, until: str, now: datetime) -> datetime | None:
    if span and until:
        raise Refused("--for and --until say the same twice: give one of them")
    if span:
        try:
            return now + timedelta(seconds=seconds_of(span, "--for"))
        except OverflowError:
            raise Refused(f"--for {span}: it would end after the year 9999") from None
    return moment_of("--until", until, now, ZoneInfo(HOST_ZONE)) if until else None


def _silence_said(book: Any, now: datetime) -> str:
    return silence_text(book, now, local(book.silent_until) if book.silent_until else "")

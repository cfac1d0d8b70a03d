"""The options of `manage.py schedule`, and a draft from those of `create`; no rows."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import TextChoices

from agents_app.cli.option_values import seconds_of, whole_of
from agents_app.clock import HOST_ZONE
from agents_app.errors import Refused
from agents_app.models import Agent, Schedule
from agents_app.schedules import Draft
from agents_app.triggers import text_of, zone

NAME_HELP = "A schedule's name, AGENT/NAME, or its number."
MOST_FAILURES = 1_000_000


class AnyOrder(CommandParser):
    """`create reporter -m hello every monday`: the text may also come after an option."""

    _inside = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        if self._inside:
            return super().parse_known_args(args, namespace)
        self._inside = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._inside = False


def add_create(parser: CommandParser) -> None:
    parser.add_argument("agent", metavar="AGENT")
    parser.add_argument("text", metavar="TEXT", nargs="*", help="'every monday at 09:00', '15m'...")
    when = parser.add_argument_group("when, if not by a text")
    when.add_argument("--at", metavar="TIME", default="", help="'2030-06-01 12:00', 17:00")
    when.add_argument("--in", metavar="SPAN", default="", help="30m, '2 hours'")
    when.add_argument("--every", metavar="SPAN", default="", help="15m, 1.5h, 'day at 09:00'")
    when.add_argument("--cron", metavar="FIELDS", default="", help="'0 9 * * 1-5', @daily")
    when.add_argument("--zone", "--timezone", metavar="ZONE", default="", help="Europe/Berlin")
    parser.add_argument("--name", default="", help="Made from the text if left out.")
    parser.add_argument(
        "-m", "--message", "--prompt", metavar="TEXT", default="", help="What the agent should do."
    )
    parser.add_argument("--dry-run", action="store_true", help="Show the fires, save nothing.")
    add_policies(parser)


def add_policies(parser: CommandParser) -> None:
    rules = parser.add_argument_group("policies")
    busy = "If no slot is free or its last run goes on (skip; one that fires once: queue)."
    _add_choice(rules, "--overlap", Schedule.Overlap, busy)
    _add_choice(rules, "--catch-up", Schedule.CatchUp, "What a downtime kept from firing (last).")
    late = "How late it may still be caught up with (1h)."
    rules.add_argument("--catch-up-window", metavar="SPAN", default="1h", help=late)
    rules.add_argument("--jitter", metavar="SPAN", default="", help="30s, 5%%: up to so late.")
    _add_choice(rules, "--gap", Schedule.Gap, "A time that the clocks leave out (shift).")
    _add_choice(rules, "--overlap-hour", Schedule.OverlapHour, "One that comes twice (first).")
    _add_choice(rules, "--anchor", Schedule.Anchor, "What an interval is counted from.")
    failures = "Paused after so many in a row (0: never)."
    rules.add_argument("--pause-after-failures", metavar="N", default="0", help=failures)


def _add_choice(parser: Any, option: str, choices: type[TextChoices], text: str) -> None:
    parser.add_argument(
        option, choices=choices.values, default="", type=lambda v: v.replace("-", "_"), help=text
    )


def draft_of(options: Mapping[str, Any], agent: Agent, now: datetime) -> Draft:
    """What was not given is as usual."""
    place = options["zone"] or agent.timezone or HOST_ZONE
    ways = {way: options[way] for way in ("at", "in", "every", "cron")}
    chosen = ("overlap", "catch_up", "gap", "overlap_hour", "anchor")
    percent, seconds = jitter_of(options["jitter"])
    failures = options["pause_after_failures"]
    return Draft(
        text=text_of({**ways, "text": " ".join(options["text"])}, now, zone(place)),
        name=options["name"].strip(),
        prompt=options["message"],
        timezone=place,
        catch_up_window_seconds=seconds_of(options["catch_up_window"], "--catch-up-window"),
        jitter_percent=percent,
        jitter_seconds=seconds,
        pause_after_failures=whole_of(failures, "--pause-after-failures", 0, MOST_FAILURES),
        **{name: options[name] for name in chosen if options[name]},
    )


def jitter_of(text: str) -> tuple[float, float]:
    """In percent, and in seconds: one of them."""
    if not text:
        return 0.0, 0.0
    if not text.endswith("%"):
        return 0.0, seconds_of(text, "--jitter")
    number = text.removesuffix("%").strip()
    try:
        return float(number) if number.isascii() else -1.0, 0.0
    except ValueError:
        raise Refused(f"--jitter {text!r}: write a percentage, such as 5%, or 30s") from None

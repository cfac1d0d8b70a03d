"""The arguments of `schedule` and `why`, and the draft made of those of `create`; no rows."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agents_app.clock import HOST_ZONE
from agents_app.console.arguments import add_common, add_wait
from agents_app.console.option_values import seconds_of, whole_of
from agents_app.errors import Refused
from agents_app.triggers import text_of, zone

NAME_HELP = "Name of the schedule, AGENT/NAME, or number."
READ_HELP = "Name of the schedule, AGENT/NAME, or number; or an agent with one schedule."
MOST_FAILURES = 1_000_000
LONGEST_NOTE = 500
MOST_SHOWN = 100_000
MOST_FIRES = 1000
# The values of the columns of schedules and firings.
STATES = ("active", "paused", "completed", "failed", "canceled")
OVERLAPS = ("skip", "queue_one", "queue", "cancel_other")
CATCH_UPS = ("skip", "last", "all")
GAPS = ("shift", "next_valid", "skip")
OVERLAP_HOURS = ("first", "second", "both")
ANCHORS = ("completion", "start")
OUTCOMES = ("undecided", "polling", "started", "queued", "skipped", "failed")
READ_VERBS = frozenset({"show", "next", "history", "why"})


class AnyOrder(ArgumentParser):
    """Allows the text after an option: `create reporter -m hello every monday`."""

    _parsing = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        if self._parsing:
            return super().parse_known_args(args, namespace)
        self._parsing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._parsing = False


def add_verbs(
    parser: ArgumentParser, parser_class: type[ArgumentParser], default_tenant: str
) -> None:
    """The subcommands of `schedule`."""
    verbs = parser.add_subparsers(
        dest="verb", required=True, metavar="VERB", parser_class=parser_class
    )

    def verb(name: str, text: str, *, named: bool = True) -> ArgumentParser:
        added: ArgumentParser = verbs.add_parser(name, help=text, description=text)
        if named:
            help_text = READ_HELP if name in READ_VERBS else NAME_HELP
            added.add_argument("name", metavar="NAME", help=help_text)
        add_common(added, default_tenant)
        return added

    add_create(verb("create", "Create a schedule and show its next fires.", named=False))
    add_list(verb("list", "List schedules, active ones first.", named=False))
    verb("show", "Show all settings and counters.")
    upcoming = verb("next", "Show the next fires, and those around the next clock change.")
    upcoming.add_argument("--count", metavar="N", default="5")
    pause = verb("pause", "Pause the schedule.")
    pause.add_argument("--until", metavar="TIME", default="", help="tomorrow, 'in 2 hours'")
    pause.add_argument("--note", metavar="TEXT", default="", help="Reason, shown in the admin.")
    resume = verb("resume", "Resume a paused schedule.")
    resume.add_argument("--now", action="store_true", help="Fire now, too.")
    verb("cancel", "Cancel the schedule permanently and drop its queued work items.")
    add_wait(verb("retry", "Queue the last failed fire again."))
    history = verb("history", "Show firings with outcome and result.")
    history.add_argument("--limit", metavar="N", default="20")
    add_firings(verb("firings", "Show the latest firings of all schedules.", named=False))
    add_why(verb("why", "Explain why it did not run: obstacles and latest firings."))


def add_why(parser: ArgumentParser) -> None:
    parser.add_argument("--at", metavar="TIME", default="", help="09:00, 'yesterday at 09:00'")
    parser.add_argument("--limit", metavar="N", default="10")


def add_firings(parser: ArgumentParser) -> None:
    parser.add_argument("--agent", default="", help="Only firings of this agent.")
    parser.add_argument("--outcome", choices=OUTCOMES, default="", help="Only this outcome.")
    add_all(parser, "firings")
    parser.add_argument("--limit", metavar="N", default="20")


def add_create(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT")
    parser.add_argument("text", metavar="TEXT", nargs="*", help="'every monday at 09:00', '15m'...")
    when = parser.add_argument_group("time, instead of TEXT")
    when.add_argument("--at", metavar="TIME", default="", help="'2030-06-01 12:00', 17:00")
    when.add_argument("--in", metavar="SPAN", default="", help="30m, '2 hours'")
    when.add_argument(
        "--every",
        metavar="SPAN",
        default="",
        help="15m, 1.5h, 'day at 9am and 5pm', or cron fields",
    )
    when.add_argument("--cron", metavar="FIELDS", default="", help="'0 9 * * 1-5', @daily")
    when.add_argument("--zone", "--timezone", metavar="ZONE", default="", help="Europe/Berlin")
    parser.add_argument("--name", default="", help="Generated from the text by default.")
    parser.add_argument(
        "-m", "--message", "--prompt", metavar="TEXT", default="", help="Prompt of the runs."
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="Show the next fires without saving."
    )
    add_policies(parser)


def add_list(parser: ArgumentParser) -> None:
    parser.add_argument("--agent", default="", help="Only schedules of this agent.")
    states = [*STATES, "disabled"]
    of_state = "Only schedules in this state; disabled: active ones of a disabled agent."
    parser.add_argument("--state", choices=states, default="", help=of_state)
    add_all(parser, "schedules")
    parser.add_argument("--limit", metavar="N", default="100")


def add_all(parser: ArgumentParser, rows: str) -> None:
    everywhere = f"Also {rows} of agents of earlier project directories."
    parser.add_argument("-a", "--all", action="store_true", help=everywhere)


def add_policies(parser: ArgumentParser) -> None:
    policies = parser.add_argument_group("policies")
    busy = "If the previous run is unfinished or no slot is free (skip; one-time: queue)."
    _add_choice(policies, "--overlap", OVERLAPS, busy)
    _add_choice(policies, "--catch-up", CATCH_UPS, "Fires missed during downtime (last).")
    late = "Longest delay of a caught-up fire (1h)."
    policies.add_argument("--catch-up-window", metavar="SPAN", default="1h", help=late)
    policies.add_argument(
        "--jitter", metavar="SPAN", default="", help="Random delay, at most 30s or 5%%."
    )
    _add_choice(policies, "--gap", GAPS, "If the time is skipped: daylight saving starts (shift).")
    _add_choice(
        policies,
        "--overlap-hour",
        OVERLAP_HOURS,
        "If the time occurs twice: daylight saving ends (first).",
    )
    _add_choice(policies, "--anchor", ANCHORS, "Start of an interval.")
    failures = "Pause after N consecutive failures (0: never)."
    policies.add_argument("--pause-after-failures", metavar="N", default="0", help=failures)


def _add_choice(parser: Any, option: str, choices: Sequence[str], text: str) -> None:
    parser.add_argument(
        option, choices=choices, default="", type=lambda v: v.replace("-", "_"), help=text
    )


def draft_values(options: Mapping[str, Any], timezone: str, now: datetime) -> dict[str, Any]:
    """The values of a new schedule for an agent with this time zone, without missing options."""
    place = options["zone"] or timezone or HOST_ZONE
    ways = {way: options[way] for way in ("at", "in", "every", "cron")}
    chosen = ("overlap", "catch_up", "gap", "overlap_hour", "anchor")
    percent, seconds = jitter_of(options["jitter"])
    failures = options["pause_after_failures"]
    return {
        "text": text_of({**ways, "text": " ".join(options["text"])}, now, zone(place)),
        "name": options["name"].strip(),
        "prompt": options["message"],
        "timezone": place,
        "catch_up_window_seconds": seconds_of(options["catch_up_window"], "--catch-up-window"),
        "jitter_percent": percent,
        "jitter_seconds": seconds,
        "pause_after_failures": whole_of(failures, "--pause-after-failures", 0, MOST_FAILURES),
        **{name: options[name] for name in chosen if options[name]},
    }


def jitter_of(text: str) -> tuple[float, float]:
    """Percent and seconds, one of them 0."""
    if not text:
        return 0.0, 0.0
    if not text.endswith("%"):
        return 0.0, seconds_of(text, "--jitter")
    number = text.removesuffix("%").strip()
    try:
        return float(number) if number.isascii() else -1.0, 0.0
    except ValueError:
        raise Refused(
            f"--jitter {text!r}: expected a percentage, such as 5%, or a duration, such as 30s"
        ) from None

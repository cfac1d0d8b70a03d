"""Output of the command `schedule`, as text or JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from agents_app.clock import iso_local
from agents_app.console.schedule_values import (
    Explanation,
    HistoryEntry,
    PastExplanation,
    ScheduledWork,
    ShownSchedule,
)
from agents_app.console.schedules import (
    COLUMNS,
    FIRE_COLUMNS,
    FIRING_COLUMNS,
    HISTORY_COLUMNS,
    details,
    entry_described,
    entry_row,
    fire_rows,
    fires_described,
    note_of,
    schedule_as_json,
    schedule_row,
    with_distance,
)
from agents_app.console.screen import Screen
from agents_app.console.tables import cell
from agents_app.names import program_name
from agents_app.text import relative
from agents_app.triggers import zone
from agents_app.triggers.preview import Preview

SHOWN_FIRES = 3


def show_list(
    screen: Screen, found: list[ShownSchedule], total: int, now: datetime, json: bool
) -> None:
    if json:
        screen.json(
            {"schedules": [schedule_as_json(schedule) for schedule in found], "total": total}
        )
        return
    if not found:
        screen.say(f"no schedules (create one with {program_name()} schedule create)")
        return
    screen.table(COLUMNS, [schedule_row(schedule, now) for schedule in found])
    if total > len(found):
        screen.say(f"{total - len(found)} more (--limit {total} shows all)")


def show_one(
    screen: Screen, schedule: ShownSchedule, seen: Preview, now: datetime, json: bool
) -> None:
    if json:
        screen.json(
            schedule_as_json(schedule) | {"next_fires": fires_described(seen, schedule)["fires"]}
        )
        return
    screen.say(title(schedule))
    for label, text in details(schedule, now):
        screen.say(f"  {label + ':':15} {cell(text)}")
    if schedule.shown_state != "disabled":
        _say_fires(screen, seen, now)


def show_created(
    screen: Screen, schedule: ShownSchedule, seen: Preview, now: datetime, json: bool
) -> None:
    """Includes the next clock change if it affects the schedule."""
    if json:
        fires = fires_described(seen, schedule)
        extra = {"next_fires": fires["fires"], "clock_change": fires["clock_change"]}
        screen.json(schedule_as_json(schedule) | extra)
        return
    screen.say(f"{title(schedule)}: {cell(schedule.text)}, {schedule.timezone}")
    _say_fires(screen, seen, now)
    if seen.change and seen.change.special:
        _say_change(screen, seen, now)


def show_next(
    screen: Screen, schedule: ShownSchedule, seen: Preview, now: datetime, json: bool
) -> None:
    if json:
        screen.json(_named(schedule) | fires_described(seen, schedule))
        return
    if not seen.fires:
        pass  # the note says why
    elif schedule.state == "paused":
        screen.say("paused; if resumed now, the schedule fires:")
    elif schedule.shown_state == "disabled":
        screen.say(f"disabled: {note_of(schedule)}; once the agent is enabled, the schedule fires:")
    if seen.fires:
        screen.table(FIRE_COLUMNS[:3], [row[:3] for row in fire_rows(seen.fires, now)])
    if seen.note:
        screen.say(seen.note)
    if seen.change:
        _say_change(screen, seen, now)


def show_history(
    screen: Screen,
    schedule: ShownSchedule,
    firings: Sequence[HistoryEntry],
    again: Sequence[ScheduledWork],
    json: bool,
) -> None:
    if json:
        screen.json(_named(schedule) | _ledger_described(schedule, firings, again))
    else:
        _say_ledger(screen, firings, again)


def show_firings(
    screen: Screen, found: Sequence[tuple[ShownSchedule, HistoryEntry]], json: bool
) -> None:
    """The firings of several schedules."""
    if json:
        described = [_named(schedule) | entry_described(e, schedule) for schedule, e in found]
        screen.json({"firings": described})
    elif found:
        rows = [(str(schedule), *entry_row(entry)) for schedule, entry in found]
        screen.table(FIRING_COLUMNS, rows)
    else:
        screen.say("no firings")


# --- why ------------------------------------------------------------------------------------


def show_why(screen: Screen, schedule: ShownSchedule, seen: Explanation, json: bool) -> None:
    if json:
        local = iso_local(seen.next_fire_at, zone(schedule.timezone))
        ledger = _ledger_described(schedule, seen.firings, seen.retried_work)
        value = asdict(seen) | {"next_fire_local": local} | ledger
        del value["retried_work"]  # in the ledger as `asked_again`, the key of version 0.1.0
        screen.json(value)
        return
    screen.say(f"{title(schedule)}: {seen.text}")
    for obstacle in seen.obstacles:
        screen.say(f"  - {cell(obstacle.text)}")
    c = seen.counters
    screen.say(
        f"{c.fired} fired, {c.skipped} skipped, {c.missed} missed, {c.late} late, "
        f"{c.failures} failures in a row"
    )
    _say_ledger(screen, seen.firings, seen.retried_work)


def show_past(
    screen: Screen, schedule: ShownSchedule, past: PastExplanation, now: datetime, json: bool
) -> None:
    around = {"before": past.before, "after": past.after}
    if json:
        sides = {"firing": past.firing, **around}
        entries = {k: e and entry_described(e, schedule) for k, e in sides.items()}
        local = iso_local(past.asked_at, zone(schedule.timezone))
        value = asdict(past) | entries | {"local": local}
        screen.json(_named(schedule) | value)
        return
    screen.say(f"{title(schedule)} at {past.local}: {cell(past.text)}")
    for label, entry in (("previous firing", past.before), ("next firing", past.after)):
        if entry is not None:
            screen.say(f"  {label}: {entry.local}: {entry.outcome}, {entry.outcome_text}")
    if past.after is None and schedule.next_fire_at and schedule.state == "active":
        screen.say(f"  next fire: {with_distance(schedule.next_fire_at, schedule, now)}")


# --- changes --------------------------------------------------------------------------------


def paused_text(
    schedule: ShownSchedule, until: datetime | None, now: datetime, changed: bool
) -> str:
    end = f" until {with_distance(until, schedule, now)}" if until else ""
    return f"{cell(schedule)} {'paused' if changed else 'was already paused'}{end}"


def resumed_text(schedule: ShownSchedule, now: datetime, changed: bool) -> str:
    at = schedule.next_fire_at
    fires = f", next fire {with_distance(at, schedule, now)}" if at else ""
    return f"{cell(schedule)} {'resumed' if changed else 'was not paused'}{fires}"


def canceled_text(schedule: ShownSchedule, dropped: int) -> str:
    return f"{cell(schedule)} canceled; queued work items dropped: {dropped}"


def run_continues_text(run_id: int) -> str:
    return f"run {run_id} continues (stop it with {program_name()} stop run:{run_id})"


def name_one_text(name: str, verb: str, found: Sequence[ShownSchedule]) -> str:
    example = f"{program_name()} schedule {verb} {found[0]}"
    return f"{name} has {len(found)} schedules: name one, as in {example}"


# --- parts ----------------------------------------------------------------------------------


def title(schedule: ShownSchedule) -> str:
    return f"{cell(str(schedule))} (#{schedule.id})" if schedule.id else cell(str(schedule))


def _named(schedule: ShownSchedule) -> dict[str, Any]:
    named = {"id": schedule.id, "agent": schedule.agent, "name": schedule.name}
    states = {"state": schedule.state, "shown_state": schedule.shown_state}
    return named | states | {"timezone": schedule.timezone}


def _say_fires(screen: Screen, seen: Preview, now: datetime) -> None:
    for number, fire in enumerate(seen.fires):
        label = "" if number else "next fires:"
        screen.say(f"  {label:15} {fire.local} ({relative(fire.at, now)})")
    if seen.note:
        screen.say(f"  {'':15} {seen.note}")


def _say_change(screen: Screen, seen: Preview, now: datetime) -> None:
    assert seen.change is not None
    screen.say(f"\n{seen.change.text}:")
    screen.table(FIRE_COLUMNS, fire_rows(seen.change.fires, now))
    if seen.change.note:
        screen.say(seen.change.note)


def _say_ledger(
    screen: Screen, firings: Iterable[HistoryEntry], again: Iterable[ScheduledWork]
) -> None:
    if rows := [entry_row(entry) for entry in firings]:
        screen.table(HISTORY_COLUMNS, rows)
    else:
        screen.say("no firings yet")
    for work in again:
        screen.say(f"retried by {cell(work.asked_by)}: {cell(work.text)}")


def _ledger_described(
    schedule: ShownSchedule, firings: Iterable[HistoryEntry], again: Iterable[ScheduledWork]
) -> dict[str, Any]:
    entries = [entry_described(entry, schedule) for entry in firings]
    return {"firings": entries, "asked_again": [asdict(work) for work in again]}

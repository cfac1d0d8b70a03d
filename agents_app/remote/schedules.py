"""`schedule` and `why` of a remote Drover."""

from collections.abc import Callable
from typing import Any

from agents_app.console import (
    ENDED_BY_A_RUN,
    LONGEST_NOTE,
    MOST_FIRES,
    MOST_SHOWN,
    ShownSchedule,
    draft_values,
    schedule_as_json,
    wait_seconds,
    whole_of,
)
from agents_app.console import schedule_screens as screens
from agents_app.errors import Refused, TriggerParseError
from agents_app.remote.drafts import drafted
from agents_app.remote.session import Session
from agents_app.remote.values import read_explanation, read_firing, read_past, read_preview
from agents_app.remote.work import report
from agents_app.triggers import moment_of, past_moment_of, with_accepted, zone

# The largest limit of the API.
MOST_OF_WHY = 1000
IN_ORDER = ("active", "paused", "failed")
NO_PROMPT = "a schedule that is created through the API needs a prompt: add -m TEXT"


def schedule(session: Session, *, verb: str, **options: Any) -> int:
    try:
        return _VERBS[verb](session, **options)
    except TriggerParseError as error:
        raise with_accepted(error) from error


# --- changes --------------------------------------------------------------------------------


def _create(session: Session, *, json: bool, dry_run: bool, **options: Any) -> int:
    agent = session.agent(options["agent"])
    if agent["removed_at"] is not None:
        raise Refused(f"the directory of {agent['name']} was removed: restore it first")
    if not options["message"].strip() and not dry_run:
        raise Refused(NO_PROMPT)
    now = session.now
    values = draft_values(options, agent["timezone"], now)
    body = {name: values[name] for name in values.keys() - {"text", "prompt"}}
    body |= {"schedule": values["text"], "message": values["prompt"], "agent": agent["name"]}
    if dry_run:
        body |= {"message": None, "count": screens.SHOWN_FIRES}
        preview = session.api.post("/schedules/preview", body)
        draft = drafted(values, agent, preview)
        screens.show_created(session.screen, draft, read_preview(preview), now, json)
        return 0
    key = session.api.post("/schedules", body)["id"]
    made = session.read_schedule(key)
    seen = read_preview(session.api.get(f"/schedules/{key}/fires", count=screens.SHOWN_FIRES))
    screens.show_created(session.screen, made, seen, now, json)
    for obstacle in session.api.get(f"/schedules/{key}/why", limit=1)["obstacles"]:
        if obstacle["code"] not in ENDED_BY_A_RUN:
            session.remark(obstacle["text"])
    return 0


def _pause(session: Session, *, name: str, until: str, note: str, json: bool, **_: Any) -> int:
    if len(note) > LONGEST_NOTE:
        raise Refused(f"the note has {len(note)} characters; the maximum is {LONGEST_NOTE}")
    found, now = session.schedule(name), session.now
    end = moment_of("--until", until, now, zone(found.timezone)) if until else None
    if found.state not in {"active", "paused"}:
        raise Refused(f"{found} is {found.state}: only an active schedule can be paused")
    changed = found.state == "active"
    if changed:
        body = {"pause_note": note} | ({"pause_until": end.timestamp()} if end else {})
        session.api.patch(f"/schedules/{found.id}", {"status": "paused", **body})
    shown = session.read_schedule(found.id or 0)
    text = screens.paused_text(shown, end if changed else None, now, changed)
    return _done(session, text, shown, {"changed": changed}, json=json)


def _resume(session: Session, *, name: str, json: bool, **options: Any) -> int:
    found, now = session.schedule(name), session.now
    if found.state not in {"active", "paused"}:
        raise Refused(f"{found} is {found.state}: only a paused schedule can be resumed")
    changed = found.state == "paused"
    if changed:
        body = {"status": "active", "at_once": options["now"]}
        session.api.patch(f"/schedules/{found.id}", body)
    shown = session.read_schedule(found.id or 0)
    text = screens.resumed_text(shown, now, changed)
    return _done(session, text, shown, {"changed": changed}, json=json)


def _cancel(session: Session, *, name: str, json: bool, **_: Any) -> int:
    found = session.schedule(name)
    queued = session.api.pages("/queue", "items", agent=found.agent)
    dropped = sum(item["schedule_id"] == found.id for item in queued)
    if found.state == "canceled":
        raise Refused(f"{found} is canceled already")
    session.api.patch(f"/schedules/{found.id}", {"status": "canceled"})
    for run in session.unfinished_runs(schedule_id=found.id):
        session.remark(screens.run_continues_text(run["id"]))
    shown = session.read_schedule(found.id or 0)
    text = screens.canceled_text(shown, dropped)
    return _done(session, text, shown, {"called_off": dropped}, json=json)


def _retry(session: Session, *, name: str, json: bool, wait: bool, timeout: str, **_: Any) -> int:
    seconds = wait_seconds(wait=wait, timeout=timeout)
    accepted = session.api.post(f"/schedules/{session.schedule(name).id}/retry")
    return report(session, accepted, json=json, wait=wait, seconds=seconds)


def _done(
    session: Session, text: str, shown: ShownSchedule, more: dict[str, Any], *, json: bool
) -> int:
    session.result(text, {"schedule": schedule_as_json(shown), **more}, json=json)
    return 0


# --- output ---------------------------------------------------------------------------------


def _list(session: Session, *, json: bool, limit: str, **options: Any) -> int:
    number = whole_of(limit, "--limit", 1, MOST_SHOWN)
    agent = session.agent(options["agent"])["name"] if options["agent"] else None
    wanted = options["state"]
    status = "active" if wanted == "disabled" else wanted or None
    found = session.list_schedules(agent=agent, status=status, all=options["all"])
    if wanted:
        found = [one for one in found if one.shown_state == wanted]
    found.sort(key=_live_first)
    screens.show_list(session.screen, found[:number], len(found), session.now, json)
    return 0


def _live_first(one: ShownSchedule) -> tuple[int, str, str]:
    """Active, paused, failed, then ended schedules."""
    place = IN_ORDER.index(one.state) if one.state in IN_ORDER else len(IN_ORDER)
    return place, one.agent, one.name


def _firings(session: Session, *, json: bool, limit: str, **options: Any) -> int:
    number = whole_of(limit, "--limit", 1, MOST_SHOWN)
    agent = session.agent(options["agent"])["name"] if options["agent"] else None
    query = {"agent": agent, "outcome": options["outcome"] or None}
    rows = list(session.api.pages("/firings", "firings", most=number, **query))
    keys = {row["schedule_id"] for row in rows}
    of = {key: session.read_schedule(key) for key in keys}
    shown = [(of[row["schedule_id"]], row) for row in rows]
    entries = [(one, read_firing(row, one.timezone)) for one, row in shown]
    screens.show_firings(session.screen, entries, json)
    return 0


def _read(session: Session, *, verb: str, name: str, json: bool, **options: Any) -> int:
    """Show one schedule, or list the schedules of the agent with this name."""
    found = session.schedules(name)
    if len(found) > 1:
        screens.show_list(session.screen, found, len(found), session.now, json)
        session.remark(screens.name_one_text(name, verb, found))
        return 0
    _READ[verb](session, found[0], json=json, **options)
    return 0


def _show(session: Session, one: ShownSchedule, *, json: bool, **_: Any) -> None:
    fires = session.api.get(f"/schedules/{one.id}/fires", count=screens.SHOWN_FIRES)
    screens.show_one(session.screen, one, read_preview(fires), session.now, json)


def _next(session: Session, one: ShownSchedule, *, json: bool, count: str, **_: Any) -> None:
    number = whole_of(count, "--count", 1, MOST_FIRES)
    seen = read_preview(session.api.get(f"/schedules/{one.id}/fires", count=number))
    screens.show_next(session.screen, one, seen, session.now, json)


def _history(session: Session, one: ShownSchedule, *, json: bool, limit: str, **_: Any) -> None:
    number = whole_of(limit, "--limit", 1, MOST_OF_WHY)
    seen = read_explanation(session.api.get(f"/schedules/{one.id}/why", limit=number), one)
    screens.show_history(session.screen, one, seen.firings, seen.retried_work, json)


def _why(
    session: Session, one: ShownSchedule, *, json: bool, at: str, limit: str, **_: Any
) -> None:
    now = session.now
    if at:
        moment = past_moment_of("--at", at, now, zone(one.timezone))
        answer = session.api.get(f"/schedules/{one.id}/why/past", at=moment.timestamp())
        screens.show_past(session.screen, one, read_past(answer, one.timezone), now, json)
    else:
        number = whole_of(limit, "--limit", 1, MOST_OF_WHY)
        answer = session.api.get(f"/schedules/{one.id}/why", limit=number)
        screens.show_why(session.screen, one, read_explanation(answer, one), json)


def _reader(verb: str) -> Callable[..., int]:
    return lambda session, **options: _read(session, verb=verb, **options)


_READ: dict[str, Callable[..., None]] = {
    "show": _show,
    "next": _next,
    "history": _history,
    "why": _why,
}
_VERBS: dict[str, Callable[..., int]] = {
    "create": _create,
    "list": _list,
    "firings": _firings,
    "pause": _pause,
    "resume": _resume,
    "cancel": _cancel,
    "retry": _retry,
    **{verb: _reader(verb) for verb in _READ},
}

"""The schedule that `schedule create --dry-run` shows, which the server has checked, not saved."""

from collections.abc import Mapping
from typing import Any

from agents_app.console import ShownSchedule
from agents_app.remote.values import Row, read_preview
from agents_app.triggers import OnceTrigger, parse_trigger

_DEFAULTS = {"catch_up": "last", "gap": "shift", "overlap_hour": "first", "anchor": ""}
_COUNTS = ("run", "fire", "skipped", "missed", "late", "failure")
_TIMES = ("pause_until", "last_fire_at", "last_completed_at", "created_at", "updated_at")


def drafted(values: Mapping[str, Any], agent: Row, preview: Row) -> ShownSchedule:
    once = isinstance(parse_trigger(preview["expression"]), OnceTrigger)
    # A one-shot has no later firing, so its work waits for a slot.
    policies = _DEFAULTS | {"overlap": "queue" if once else "skip"}
    disabled = agent["state"] == "disabled"
    fires = read_preview(preview).fires
    given = {name: value for name, value in values.items() if name not in {"name", "timezone"}}
    known: dict[str, Any] = policies | given | dict.fromkeys(_TIMES)
    known |= {f"{name}_count": 0 for name in _COUNTS}
    return ShownSchedule(
        **known,
        id=None,
        agent=agent["name"],
        name=preview["name"],
        state="active",
        shown_state="disabled" if disabled else "active",
        disabled_because=agent["note"] if disabled else "",
        enabled=not disabled,
        source="person",
        expression=preview["expression"],
        one_shot=once,
        timezone=preview["timezone"],
        pause_note="",
        last_error="",
        next_fire_at=fires[0].at if fires else None,
    )

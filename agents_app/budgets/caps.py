"""Caps on tokens and cost, and the day and month windows they hold for; no tables, no clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any


def run_is_over(caps: Mapping[str, Any], tokens: int, cost_usd: Decimal) -> str:
    """Which cap on a single run was passed, in words, or nothing."""
    token_cap, usd_cap = caps.get("tokens_per_run"), caps.get("usd_per_run")
    if token_cap is not None and tokens > token_cap:
        return f"budget: {tokens:,} tokens, and a run may use {token_cap:,}"
    if usd_cap is not None and cost_usd > _dollars(usd_cap):
        return f"budget: ${cost_usd:.2f}, and a run may cost ${usd_cap:.2f}"
    return ""


def used_up(caps: Mapping[str, Any], window: str, tokens: int, cost_usd: Decimal) -> str:
    """Which cap of a `day` or `month` leaves nothing for another run, in words, or nothing."""
    token_cap, usd_cap = caps.get(f"tokens_per_{window}"), caps.get(f"usd_per_{window}")
    if token_cap is not None and tokens >= token_cap:
        return f"budget: {tokens:,} of {token_cap:,} tokens a {window} are used"
    if usd_cap is not None and cost_usd >= _dollars(usd_cap):
        return f"budget: ${cost_usd:.2f} of ${usd_cap:.2f} a {window} are spent"
    return ""


def percent_used(
    caps: Mapping[str, Any], window: str, tokens: int, cost_usd: Decimal | float
) -> float | None:
    """Of the cap of a `day` or `month` that is nearest to its end; None: there is no cap."""
    token_cap, usd_cap = caps.get(f"tokens_per_{window}"), caps.get(f"usd_per_{window}")
    used = [
        100 * float(spent) / float(cap) if cap else 100.0
        for spent, cap in ((tokens, token_cap), (cost_usd, usd_cap))
        if cap is not None
    ]
    return max(used, default=None)


def _dollars(cap: float) -> Decimal:
    return Decimal(str(cap))


# --- windows --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """Days from the first to the last, and the instant at which the next window begins."""

    first: date
    last: date
    ends_at: datetime


def day_of(now: datetime, zone: tzinfo) -> date:
    return now.astimezone(zone).date()


def day_window(now: datetime, zone: tzinfo) -> Window:
    today = day_of(now, zone)
    return Window(today, today, _midnight(today + timedelta(days=1), zone))


def month_window(now: datetime, zone: tzinfo) -> Window:
    first = day_of(now, zone).replace(day=1)
    following = (first + timedelta(days=31)).replace(day=1)
    return Window(first, following - timedelta(days=1), _midnight(following, zone))


def _midnight(day: date, zone: tzinfo) -> datetime:
    """The first instant of the day, also where the clocks go forward at midnight."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)

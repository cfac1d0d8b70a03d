"""Caps on tokens and cost, and their windows of a day or a month; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any


def run_is_over(caps: Mapping[str, Any], tokens: int, cost_usd: Decimal) -> str:
    """The cap on a single run that was exceeded, as text, or empty."""
    token_cap, usd_cap = caps.get("tokens_per_run"), caps.get("usd_per_run")
    if token_cap is not None and tokens > token_cap:
        return f"budget: {tokens:,} tokens used, at most {token_cap:,} per run"
    if usd_cap is not None and cost_usd > _dollars(usd_cap):
        return f"budget: ${cost_usd:.2f} spent, at most ${usd_cap:.2f} per run"
    return ""


def used_up(caps: Mapping[str, Any], window: str, tokens: int, cost_usd: Decimal) -> str:
    """The cap of a `day` or `month` that is used up, as text, or empty."""
    token_cap, usd_cap = caps.get(f"tokens_per_{window}"), caps.get(f"usd_per_{window}")
    if token_cap is not None and tokens >= token_cap:
        return f"budget: {tokens:,} of {token_cap:,} tokens per {window} used"
    if usd_cap is not None and cost_usd >= _dollars(usd_cap):
        return f"budget: ${cost_usd:.2f} of ${usd_cap:.2f} per {window} spent"
    return ""


def percent_used(
    caps: Mapping[str, Any], window: str, tokens: int, cost_usd: Decimal | float
) -> float | None:
    """Percent used of the tightest cap of a `day` or `month`; None without a cap."""
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
    """The first and the last day, and the instant at which the next window begins."""

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
    """The first instant of the day, also if daylight saving starts at midnight."""
    return datetime.combine(day, time.min, zone).astimezone(UTC)

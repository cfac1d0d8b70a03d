"""Tokens and cost of a run, as values."""

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

# More than any run can use: a larger number is an error of the program.
MOST_TOKENS = 10**12
MOST_USD = 100_000
_MICRO = Decimal("0.000001")


def count(value: Any) -> int:
    """A number of tokens; 0 for an invalid value."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 <= value <= MOST_TOKENS else 0


def cost(value: Any) -> Decimal:
    """An amount of dollars; 0 for an invalid value."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return Decimal(0)
    sane = math.isfinite(value) and 0 <= value <= MOST_USD
    return Decimal(str(value)).quantize(_MICRO) if sane else Decimal(0)


@dataclass(frozen=True, slots=True)
class Spending:
    """Tokens read from or written to a cache are only in `tokens_cache`."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cache: int = 0
    cost_usd: Decimal = Decimal(0)

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out + self.tokens_cache

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.tokens_cache + other.tokens_cache,
            self.cost_usd + other.cost_usd,
        )

    def __sub__(self, other: "Spending") -> "Spending":
        return Spending(
            self.tokens_in - other.tokens_in,
            self.tokens_out - other.tokens_out,
            self.tokens_cache - other.tokens_cache,
            self.cost_usd - other.cost_usd,
        )

    def at_least(self, other: "Spending") -> "Spending":
        """The maximum of each number."""
        return Spending(
            max(self.tokens_in, other.tokens_in),
            max(self.tokens_out, other.tokens_out),
            max(self.tokens_cache, other.tokens_cache),
            max(self.cost_usd, other.cost_usd),
        )

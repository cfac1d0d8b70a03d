"""Caps on tokens and cost, and the agents that are blocked by them.

Belongs here: sums of usage, windows and holds.
Does not belong here: reading usage from the output of a tool (harness).
"""

from agents_app.budgets import holds
from agents_app.budgets.caps import day_of, month_window, percent_used, run_is_over

__all__ = ["day_of", "holds", "month_window", "percent_used", "run_is_over"]

"""Explanations why a schedule did or did not fire, in sentences, read from the rows.

Belongs here: explanations of obstacles, of the present state and of past instants.
Does not belong here: changes of any row.
"""

from agents_app.schedules.why.obstacles import find_obstacles
from agents_app.schedules.why.past import explain_past
from agents_app.schedules.why.present import explain

__all__ = [
    "explain",
    "explain_past",
    "find_obstacles",
]

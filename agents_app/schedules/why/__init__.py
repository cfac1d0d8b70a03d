"""Why a schedule did or did not run, in sentences, from the rows.

Belongs here: explanations of obstacles and of past instants.
Does not belong here: changes of any row.
"""

from agents_app.schedules.why.now import Counters, Explanation, explain
from agents_app.schedules.why.obstacles import PASSING, Obstacle, find_obstacles
from agents_app.schedules.why.then import Then, explain_then

__all__ = [
    "PASSING",
    "Counters",
    "Explanation",
    "Obstacle",
    "Then",
    "explain",
    "explain_then",
    "find_obstacles",
]

"""The one door to "why did it not run?": answers from the rows, in words; changes nothing."""

from agents_app.why.now import Counters, Explanation, explain
from agents_app.why.obstacles import PASSING, Obstacle, find_obstacles
from agents_app.why.then import Then, explain_then

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

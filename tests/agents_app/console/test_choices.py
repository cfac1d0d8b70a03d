"""The choices of options are the values of the columns, which need Django."""

import pytest

from agents_app.console import schedule_arguments as arguments
from agents_app.models import Firing, Schedule


@pytest.mark.parametrize(
    ("offered", "stored"),
    [
        (arguments.STATES, Schedule.State),
        (arguments.OVERLAPS, Schedule.Overlap),
        (arguments.CATCH_UPS, Schedule.CatchUp),
        (arguments.GAPS, Schedule.Gap),
        (arguments.OVERLAP_HOURS, Schedule.OverlapHour),
        (arguments.ANCHORS, Schedule.Anchor),
    ],
)
def test_an_option_offers_what_the_column_takes(offered: tuple[str, ...], stored: type):
    assert list(offered) == [value for value in stored.values if value]


def test_the_outcomes_of_firings_are_offered():
    assert list(arguments.OUTCOMES) == [value or "undecided" for value in Firing.Outcome.values]

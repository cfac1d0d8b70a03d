"""The fixtures of the tests of pages."""

from tests.agents_app.admin.visitors import _times_are_shown_in_utc as _times_are_shown_in_utc
from tests.agents_app.admin.visitors import boss as boss
from tests.agents_app.admin.visitors import fleet as fleet
from tests.agents_app.admin.visitors import visitor as visitor

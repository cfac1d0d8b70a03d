"""The trace id of the sender is passed on; an invalid trace id is ignored."""

import pytest

from agents_app.events.trace import trace_id_of

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


@pytest.mark.parametrize(
    "header",
    [
        f"00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-00",
        f"  00-{TRACE}-{SPAN}-01\t",
        f"01-{TRACE}-{SPAN}-01",
        f"fe-{TRACE}-{SPAN}-09-what-comes-later",
    ],
)
def test_a_header_names_its_trace(header: str):
    assert trace_id_of(header) == TRACE


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        TRACE,
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"01-{TRACE}-{SPAN}-01more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-0g",
        f"00-{TRACE}-{SPAN}-01\n",
        "00-" + "٣" * 32 + f"-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01" * 10_000,
        "\0" * 55,
    ],
)
def test_one_that_cannot_be_read_is_none(header: str | None):
    assert trace_id_of(header) == ""

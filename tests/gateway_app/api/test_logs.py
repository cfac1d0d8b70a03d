"""/v1/runs/{id}/logs and /output: the output of a run as lines or as bytes."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gateway_app.api.logs import byte_range
from tests.agents_app.admin.visitors import tell
from tests.agents_app.fleet import Fleet
from tests.gateway_app.api.calling import Api, Reply

OUT, ERR = 1, 2


@pytest.fixture
def run_id(fleet: Fleet) -> int:
    return fleet.start(fleet.enqueue(fleet.agent())).run_id


def texts(reply: Reply) -> list[str]:
    return [line["text"] for line in reply.json["lines"]]


# --- lines ----------------------------------------------------------------------------------


def test_lines_have_a_number_a_time_and_a_stream(reader: Api, run_id: int):
    tell(run_id, b"one\ntwo\n")
    tell(run_id, b"oops\n", ERR)
    reply = reader.get(f"/runs/{run_id}/logs")
    first = datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp()
    assert reply.json["lines"] == [
        {"number": 0, "at": first, "stream": "stdout", "text": "one"},
        {"number": 1, "at": first, "stream": "stdout", "text": "two"},
        {"number": 2, "at": first + 1, "stream": "stderr", "text": "oops"},
    ]
    assert (reply.json["next_offset"], reply.json["complete"]) == (3, False)


def test_a_line_is_shown_when_it_is_complete_or_the_run_has_ended(fleet: Fleet, reader: Api):
    job = fleet.start(fleet.enqueue(fleet.agent()))
    tell(job.run_id, b"half")
    assert texts(reader.get(f"/runs/{job.run_id}/logs")) == []
    tell(job.run_id, b" a line\nthe end")
    assert texts(reader.get(f"/runs/{job.run_id}/logs")) == ["half a line"]
    fleet.finish(job)
    reply = reader.get(f"/runs/{job.run_id}/logs")
    assert texts(reply) == ["half a line", "the end"]
    assert reply.json["complete"] is True


def test_offset_and_limit_give_a_part_and_the_next_offset(fleet: Fleet, reader: Api):
    job = fleet.start(fleet.enqueue(fleet.agent()))
    tell(job.run_id, b"".join(b"line %d\n" % number for number in range(10)))
    fleet.finish(job)
    seen, offset, complete = [], 0, False
    while not complete:
        page = reader.get(f"/runs/{job.run_id}/logs", offset=offset, limit=4)
        seen += texts(page)
        offset, complete = page.json["next_offset"], page.json["complete"]
    assert seen == [f"line {number}" for number in range(10)]
    beyond = reader.get(f"/runs/{job.run_id}/logs", offset=99)
    assert (texts(beyond), beyond.json["complete"]) == ([], True)


@pytest.mark.fault("F35")
def test_bytes_that_are_not_text_are_made_safe_to_show(reader: Api, run_id: int):
    tell(run_id, b"\x1b[31mred\x1b[0m \xff\x00\n")
    assert texts(reader.get(f"/runs/{run_id}/logs")) == ["red \N{REPLACEMENT CHARACTER}"]


def test_a_part_of_a_log_has_the_same_line_numbers_as_the_whole(fleet: Fleet, reader: Api):
    job = fleet.start(fleet.enqueue(fleet.agent()))
    for piece in (b"10%\r50%\r100%\nsecond ", b"line\nthe \xe2\x82", b"\xac\nlast"):
        tell(job.run_id, piece)
    fleet.finish(job)
    whole = reader.get(f"/runs/{job.run_id}/logs").json["lines"]
    texts = ["10%", "50%", "100%", "second line", "the \N{EURO SIGN}", "last"]
    assert [line["text"] for line in whole] == texts
    for offset in range(7):
        page = reader.get(f"/runs/{job.run_id}/logs", offset=offset)
        assert page.json["lines"] == whole[offset:]
        assert (page.json["next_offset"], page.json["complete"]) == (6, True)


# --- bytes ----------------------------------------------------------------------------------


def raw(api: Api, run_id: int, header: str = "") -> Any:
    headers = api.headers | ({"Range": header} if header else {})
    return api.client.get(f"/v1/runs/{run_id}/output", headers=headers)


def test_the_output_has_the_printed_bytes(reader: Api, run_id: int):
    tell(run_id, b"\x1b[31m\xff\x00")
    tell(run_id, b"oops", ERR)
    response = raw(reader, run_id)
    assert (response.status_code, response.content) == (200, b"\x1b[31m\xff\x00oops")
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Accept-Ranges"] == "bytes"


def test_a_range_gives_a_part(reader: Api, run_id: int):
    tell(run_id, b"0123")
    tell(run_id, b"456789")
    response = raw(reader, run_id, "bytes=3-5")
    assert (response.status_code, response.content) == (206, b"345")
    assert response["Content-Range"] == "bytes 3-5/10"
    assert raw(reader, run_id, "bytes=8-").content == b"89"
    assert raw(reader, run_id, "bytes=-3").content == b"789"


def test_a_range_beyond_the_end_is_refused_with_the_size(reader: Api, run_id: int):
    tell(run_id, b"0123")
    response = raw(reader, run_id, "bytes=4-")
    assert response.status_code == 416
    assert response["Content-Range"] == "bytes */4"
    assert response.json()["error"]["code"] == "no_such_range"


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("", None),
        ("bytes=-", None),
        ("bytes=5-3", None),
        ("lines=1-2", None),
        ("bytes=0-1,3-4", None),
        ("bytes=0-", range(10)),
        ("bytes=0-99", range(10)),
        ("bytes=9-9", range(9, 10)),
        ("bytes=-99", range(10)),
        ("bytes=10-", range(10, 10)),
        ("bytes=-0", range(10, 10)),
    ],
)
def test_ranges_are_parsed_as_in_rfc_9110(header: str, part: range | None):
    assert byte_range(header, 10) == part

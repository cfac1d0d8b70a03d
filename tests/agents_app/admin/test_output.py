"""The log on a run's page: in order, decoded whole, coloured, in parts, and never markup."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from agents_app.admin.log import SHOWN_LINES, end_of_log
from agents_app.models import Run
from agents_app.output import whole_text
from tests.agents_app.admin.visitors import tell
from tests.agents_app.fleet import Fleet, live_run


@pytest.fixture
def run(fleet: Fleet) -> Run:
    """A running run."""
    item = fleet.enqueue(fleet.agent())
    fleet.start(item)
    return live_run(item)


def page(client: Client, run: Run) -> str:
    url = reverse("admin:agents_app_run_change", args=[run.pk])
    return client.get(url).content.decode()


def lines(client: Client, run: Run, **asked: Any) -> dict[str, Any]:
    response = client.get(reverse("admin:agents_app_run_lines", args=[run.pk]), asked)
    assert response.status_code == 200
    answer: dict[str, Any] = response.json()
    return answer


def end(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state="succeeded", slot=None)
    run.refresh_from_db()


def texts(run: Run) -> list[str]:
    return ["".join(span.text for span in line.spans) for line in end_of_log(run).lines]


def test_lines_are_shown_in_order_with_times_and_both_streams_apart(boss: Client, run: Run):
    tell(run.pk, b"one\n")
    tell(run.pk, b"oh no\n", stream=2)
    shown = page(boss, run)
    line = (
        '<div class="dv-line dv-{0}" data-number="{1}" data-stream="{0}"><time>{2}</time>'
        '<span class="dv-text">{3}</span>'
    )
    assert line.format("stdout", 0, "12:00:00", "one") in shown
    assert line.format("stderr", 1, "12:00:01", "oh no") in shown


@pytest.mark.fault("F35")
def test_output_is_text_and_never_markup_or_an_escape_sequence(boss: Client, run: Run):
    tell(run.pk, b"<script>alert(1)</script>\x1b[31m<b>red\x1b[0m\x1b]52;c;aGk=\x07\n")
    shown = page(boss, run)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert '<span class="dv-fg-1">&lt;b&gt;red</span>' in shown
    assert "\x1b" not in shown


def test_any_colour_is_shown_as_a_style_that_the_server_wrote(boss: Client, run: Run):
    tell(run.pk, b"\x1b[1;38;2;1;2;3;48;5;208mx\n")
    shown = page(boss, run)
    assert '<span class="dv-bold" style="color:#010203;background:#ff8700">x</span>' in shown


def test_a_line_that_has_not_ended_is_shown_open_until_the_run_ends(boss: Client, run: Run):
    tell(run.pk, b"one\n 10%\r")
    tell(run.pk, b" 20%\r")
    shown = page(boss, run)
    assert 'data-number="2" data-stream="stdout" data-open' in shown
    assert "> 20%<" in shown
    assert 'data-last="0"' in shown
    assert "data-growing" in shown
    end(run)
    shown = page(boss, run)
    assert "data-open" not in shown
    assert "data-growing" not in shown
    assert texts(run) == ["one", " 20%"]


def test_only_the_end_of_a_long_log_is_on_the_page_and_earlier_lines_are_loaded_in_parts(
    boss: Client, run: Run
):
    total = SHOWN_LINES * 2 + 10
    for first in range(0, total, 100):
        numbers = range(first, min(first + 100, total))
        tell(run.pk, b"".join(b"line %d;\n" % number for number in numbers))
    end(run)
    shown = page(boss, run)
    assert shown.count('class="dv-line') == SHOWN_LINES
    assert f'data-earlier="{total - SHOWN_LINES}"' in shown
    assert f"Earlier lines ({total - SHOWN_LINES})" in shown
    before = lines(boss, run, before=total - SHOWN_LINES)
    assert (len(before["lines"]), before["earlier"]) == (SHOWN_LINES, 10)
    assert before["lines"][0]["spans"] == [{"text": "line 10;"}]
    assert len(lines(boss, run, before=10)["lines"]) == 10
    # A client that requests new lines gets all of them in the end, however many came at once.
    new = lines(boss, run, after=5)
    assert [line["number"] for line in new["lines"]] == list(range(6, SHOWN_LINES + 6))
    assert not new["ended"]
    assert lines(boss, run, after=total - 3)["ended"]
    response = boss.get(reverse("admin:agents_app_run_text", args=[run.pk]))
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["Content-Disposition"] == f'attachment; filename="run-{run.pk}.txt"'
    assert response.content.decode().count("\n") == total


def test_a_page_of_heavy_lines_stays_light_and_says_that_there_are_earlier_ones(
    boss: Client, run: Run
):
    tell(run.pk, (b"\x1b[31mx\x1b[32my" * 200 + b"\n") * 40)
    end(run)
    shown = page(boss, run)
    on_it = shown.count('class="dv-line')
    assert 0 < on_it < 40
    assert f"Earlier lines ({40 - on_it})" in shown
    assert len(lines(boss, run, before=40 - on_it)["lines"]) == min(on_it, 40 - on_it)
    # Requests for new lines begin with the oldest one and come to the end.
    seen, ended = [0], False
    while not ended:
        answer = lines(boss, run, after=seen[-1])
        assert answer["lines"]
        seen += [line["number"] for line in answer["lines"]]
        ended = answer["ended"]
    assert seen == list(range(40))


def test_new_lines_can_be_requested_without_a_stream(boss: Client, run: Run):
    tell(run.pk, b"one\ntwo\nthr")
    answer = lines(boss, run, after=0)
    assert [(line["number"], line["open"]) for line in answer["lines"]] == [(1, False), (2, True)]
    assert answer["ended"] is False
    end(run)
    assert lines(boss, run, after=1)["ended"] is True


@pytest.mark.parametrize("asked", ["", "-1", "x", "1e9", "٣", "99999999999999999999999"])
def test_a_request_without_a_valid_number_gets_the_end_of_the_log(
    boss: Client, run: Run, asked: str
):
    tell(run.pk, b"one\n")
    assert len(lines(boss, run, after=asked, before=asked)["lines"]) == 1


def test_bytes_that_are_no_text_are_replaced_at_the_very_end_too(run: Run):
    tell(run.pk, b"ok \xff\xfe and \xe2\x82")
    end(run)
    assert texts(run) == ["ok \ufffd\ufffd and \ufffd"]
    assert whole_text(run.pk) == "ok \ufffd\ufffd and \ufffd\n"


def test_a_run_that_printed_nothing_says_so(boss: Client, run: Run):
    assert "No output yet." in page(boss, run)
    end(run)
    assert "No output." in page(boss, run)


def test_the_log_needs_the_permission_to_view_runs(client: Client, visitor: Client, run: Run):
    tell(run.pk, b"secret\n")
    assert "secret" in page(visitor, run)
    for name in ("lines", "text", "facts", "events"):
        url = reverse(f"admin:agents_app_run_{name}", args=[run.pk])
        assert visitor.get(url).status_code == 200
        assert client.get(url).status_code == 302


def test_staff_without_the_permission_get_no_part_of_the_log(
    client: Client, run: Run, django_user_model: Any
):
    client.force_login(django_user_model.objects.create_user("new", is_staff=True))
    for name in ("lines", "text", "facts", "events"):
        url = reverse(f"admin:agents_app_run_{name}", args=[run.pk])
        assert client.get(url).status_code == 403
        assert client.get(url.replace(str(run.pk), "424242")).status_code in {403, 404}

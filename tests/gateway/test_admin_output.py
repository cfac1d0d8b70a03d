"""The output on a run's page: in order, decoded whole, marked, live, and never markup."""

import pytest
from django.test import Client
from django.urls import reverse

from agents_app.admin.output_pieces import SHOWN_BYTES, output_after, whole_text
from agents_app.models import Run
from tests.agents.fleet import Fleet, live_run
from tests.gateway.conftest import tell


@pytest.fixture
def run(fleet: Fleet) -> Run:
    """One that is running."""
    item = fleet.ask(fleet.agent())
    fleet.start(item)
    return live_run(item)


def page(client: Client, run: Run) -> str:
    url = reverse("admin:agents_app_run_change", args=[run.pk])
    return client.get(url).content.decode()


def live(client: Client, run: Run, after: int | str) -> str:
    url = reverse("admin:agents_app_run_live", args=[run.pk])
    response = client.get(url, {"after": after})
    assert response.status_code == 200
    return response.content.decode()


def end(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state="succeeded", slot=None)
    run.refresh_from_db()


def text(run: Run, after: int = 0) -> str:
    return "".join(piece.text for piece in output_after(run, after).pieces)


def test_output_is_shown_in_order_with_times_and_errors_marked(boss: Client, run: Run):
    tell(run.pk, b"one\n")
    tell(run.pk, b"oh no\n", stream=2)
    shown = page(boss, run)
    assert '<time class="dv-out-at">12:00:00</time><span class="dv-out">one\n</span>' in shown
    assert '<time class="dv-err-at">12:00:01</time><span class="dv-err">oh no\n</span>' in shown


def test_output_is_text_and_never_markup_or_escape_sequences(boss: Client, run: Run):
    tell(run.pk, b"<script>alert(1)</script>\x1b[31mred\x1b[0m\x1b]52;c;aGk=\x07\n")
    shown = page(boss, run)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;red\n" in shown
    assert "\x1b" not in shown


def test_a_character_split_between_pieces_is_whole_also_between_two_looks(run: Run):
    euro = "€".encode()
    tell(run.pk, b"5 " + euro[:1])
    assert text(run) == "5 "
    tell(run.pk, euro[1:] + b" left\n")
    assert text(run, after=1) == "€ left\n"
    assert text(run) == "5 € left\n"


def test_a_line_goes_on_without_a_new_time(run: Run):
    tell(run.pk, b"working")
    tell(run.pk, b"... done\nnext\n")
    pieces = output_after(run, 0).pieces
    assert [(piece.text, piece.at is not None) for piece in pieces] == [
        ("working", True),
        ("... done\n", False),
        ("next\n", True),
    ]
    assert [piece.at is None for piece in output_after(run, 1).pieces] == [True, False]


def test_an_error_in_the_middle_of_a_line_begins_a_line_of_its_own(run: Run):
    tell(run.pk, b"half a line")
    tell(run.pk, b"oops\n", stream=2)
    pieces = output_after(run, 0).pieces
    assert [(piece.stream, piece.text) for piece in pieces] == [
        ("out", "half a line"),
        ("err", "\n"),
        ("err", "oops\n"),
    ]
    assert pieces[2].at is not None


def test_an_unfinished_run_asks_for_what_is_new_and_a_finished_one_does_not(boss: Client, run: Run):
    tell(run.pk, b"one\n")
    assert "live/?after=1" in page(boss, run)
    tell(run.pk, b"two\n")
    more = live(boss, run, 1)
    assert "two" in more
    assert "one" not in more
    assert "live/?after=2" in more
    assert 'id="dv-facts"' in more
    end(run)
    assert "live/?after" not in page(boss, run)


def test_the_end_of_a_run_makes_its_page_load_again(boss: Client, run: Run):
    end(run)
    response = boss.get(reverse("admin:agents_app_run_live", args=[run.pk]))
    assert response["HX-Refresh"] == "true"


@pytest.mark.parametrize("after", ["", "-1", "x", "1e9", "٣", "99999999999999999999999"])
def test_a_strange_question_for_more_is_answered(boss: Client, run: Run, after: str):
    tell(run.pk, b"one\n")
    live(boss, run, after)


def test_only_the_end_of_a_long_output_is_on_the_page_and_all_of_it_in_the_download(
    boss: Client, run: Run
):
    for number in range(8):
        tell(run.pk, f"part {number} ".encode() + b"x" * 60_000 + b"\n")
    end(run)
    shown = output_after(run, 0)
    assert shown.left_out
    assert SHOWN_BYTES <= sum(len(piece.text) for piece in shown.pieces) < SHOWN_BYTES + 61_000
    assert "part 7" in text(run)
    assert "part 0" not in text(run)
    response = boss.get(reverse("admin:agents_app_run_text", args=[run.pk]))
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["Content-Disposition"] == f'attachment; filename="run-{run.pk}.txt"'
    assert [f"part {number} " in response.content.decode() for number in range(8)] == [True] * 8


def test_bytes_that_are_no_text_are_replaced_at_the_very_end_too(run: Run):
    tell(run.pk, b"ok \xff\xfe and \xe2\x82")
    end(run)
    assert text(run) == whole_text(run) == "ok \ufffd\ufffd and \ufffd"


def test_a_run_that_printed_nothing_says_so(boss: Client, run: Run):
    end(run)
    assert "It printed nothing" in page(boss, run)


def test_the_output_is_for_those_who_may_see_runs(client: Client, visitor: Client, run: Run):
    tell(run.pk, b"secret\n")
    assert "secret" in page(visitor, run)
    for name in ("live", "text"):
        url = reverse(f"admin:agents_app_run_{name}", args=[run.pk])
        assert visitor.get(url).status_code == 200
        assert client.get(url).status_code == 302


def test_staff_without_the_permission_get_no_output(client: Client, run: Run, django_user_model):
    client.force_login(django_user_model.objects.create_user("new", is_staff=True))
    for name in ("live", "text"):
        url = reverse(f"admin:agents_app_run_{name}", args=[run.pk])
        assert client.get(url).status_code == 403
        assert client.get(url.replace(str(run.pk), "424242")).status_code in {403, 404}


def test_the_timeline_tells_what_happened(boss: Client, run: Run):
    shown = page(boss, run)
    assert shown.index("run.admitted") < shown.index("run.started")

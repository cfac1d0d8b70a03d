"""`manage.py logs`: output made safe for a terminal, wherever it was cut into pieces."""

from collections.abc import Iterator

from agents_app.clock import local
from agents_app.database.transactions import in_transaction
from agents_app.models import Run
from agents_app.output import progress
from agents_app.runs import dispatch
from tests.agents_app.fleet import Fleet, at
from tests.agents_app.management.calling import call
from tests.agents_app.output.stored import store_output

OUT, ERR = 1, 2


def printed(run_id: int, *pieces: tuple[int, bytes]) -> None:
    in_transaction(lambda: store_output(run_id, *pieces))


def running(fleet: Fleet, name: str = "reporter") -> int:
    return fleet.start(fleet.enqueue(fleet.agent(name, scale=3))).run_id


def test_both_streams_come_in_the_order_they_were_printed(durable_fleet: Fleet):
    run_id = running(durable_fleet)
    printed(run_id, (OUT, b"one\n"), (ERR, b"two\n"), (OUT, b"three"))
    said = call("logs", str(run_id))
    assert said.out == "one\ntwo\nthree\n"
    assert said.err == f"run {run_id} running\n"


def test_an_agents_name_means_its_newest_run(durable_fleet: Fleet):
    agent = durable_fleet.agent(scale=2)
    older, newer = (durable_fleet.start(durable_fleet.enqueue(agent)).run_id for _ in range(2))
    other = running(durable_fleet, "other")
    printed(older, (OUT, b"older\n"))
    printed(newer, (OUT, b"newer\n"))
    printed(other, (OUT, b"newest of all\n"))
    assert call("logs", "reporter").out == "newer\n"
    assert call("logs").out == "newest of all\n"


def test_an_agent_that_never_ran_says_so(durable_fleet: Fleet):
    durable_fleet.agent()
    said = call("logs", "reporter")
    assert said.code == 1
    assert said.err.startswith("agent 'reporter' has not run yet")
    assert call("logs").err.startswith("no agent has run yet")


def test_a_character_cut_between_two_pieces_is_whole_again(durable_fleet: Fleet):
    run_id = running(durable_fleet)
    cut = "grün".encode()
    printed(run_id, (OUT, cut[:3]), (ERR, b"!"), (OUT, cut[3:] + b"\n"))
    assert call("logs", str(run_id)).out == "gr!ün\n"


def test_escape_sequences_and_broken_bytes_do_not_reach_the_terminal(durable_fleet: Fleet):
    run_id = running(durable_fleet)
    printed(run_id, (OUT, b"\x1b]0;owned\x07a\x1b[2"), (OUT, b"Jb\xff\0c\xe2\x82"))
    assert call("logs", str(run_id)).out == "ab\ufffdc\ufffd\n"


def test_the_time_is_printed_before_each_line(durable_fleet: Fleet):
    run_id = running(durable_fleet)
    printed(run_id, (OUT, b"a\nb"), (OUT, "c\u2028d\n\n".encode()), (ERR, b"e"))
    stamps = [local(at(second)) for second in (0, 0, 1, 2)]
    expected = ["a", "bc\u2028d", "", "e"]
    lines = [f"{stamp}  {text}" for stamp, text in zip(stamps, expected, strict=True)]
    assert call("logs", str(run_id), "--times").out == "\n".join(lines) + "\n"


def test_json_is_one_document(durable_fleet: Fleet):
    run_id = running(durable_fleet)
    printed(run_id, (ERR, b"oh\n"), (OUT, b"half"))
    said = call("logs", "reporter", "--json").json
    assert (said["agent"], said["run"]["id"], said["run"]["state"]) == (
        "reporter",
        run_id,
        "running",
    )
    assert said["output"] == [
        {
            "run_id": run_id,
            "run": run_id,
            "number": 0,
            "stream": "stderr",
            "at": "2026-03-02T12:00:00Z",
            "text": "oh",
            "open": False,
        },
        {
            "run_id": run_id,
            "run": run_id,
            "number": 1,
            "stream": "stdout",
            "at": "2026-03-02T12:00:01Z",
            "text": "half",
            "open": True,
        },
    ]


def test_a_log_of_several_batches_of_rows_is_printed_whole(durable_fleet: Fleet, monkeypatch):
    monkeypatch.setattr("agents_app.output.reader.ROWS_AT_ONCE", 2)
    run_id = running(durable_fleet)
    printed(run_id, *[(OUT, b"%d " % number) for number in range(7)])
    assert call("logs", str(run_id)).out == "0 1 2 3 4 5 6 \n"


def test_following_ends_with_the_run_and_misses_nothing(durable_fleet: Fleet, monkeypatch):
    job = durable_fleet.start(durable_fleet.enqueue(durable_fleet.agent()))
    steps = iter(["print", "end"])

    def meanwhile(_: float) -> None:
        if next(steps) == "print":
            printed(job.run_id, (OUT, b"while it runs\n"))
        else:
            printed(job.run_id, (OUT, b"last words"))
            durable_fleet.finish(job, "failed", error="exit code 3", exit_code=3)

    monkeypatch.setattr("agents_app.output.progress.sleep", meanwhile)
    said = call("logs", str(job.run_id), "-f")
    assert said.code == 0
    assert said.out == "while it runs\nlast words\n"
    assert said.err == f"run {job.run_id} failed: exit code 3\n"


def test_an_agent_is_followed_from_run_to_run(durable_fleet: Fleet, monkeypatch):
    agent = durable_fleet.agent()
    ended = durable_fleet.start(durable_fleet.enqueue(agent))
    printed(ended.run_id, (OUT, b"earlier\n"))
    durable_fleet.finish(ended)

    def step() -> Iterator[None]:
        for word in (b"second\n", b"third"):
            job = durable_fleet.start(durable_fleet.enqueue(agent))
            printed(job.run_id, (OUT, word))
            durable_fleet.finish(job)
            yield
        # A run of another agent is not shown.
        printed(running(durable_fleet, "other"), (OUT, b"other\n"))
        yield
        raise KeyboardInterrupt

    steps = step()
    monkeypatch.setattr("agents_app.cli.followed_runs.sleep", lambda _: next(steps))
    said = call("logs", "reporter", "-f")
    assert (said.code, said.out) == (0, "earlier\nsecond\nthird\n")
    first, second, third = agent.runs.order_by("pk").values_list("pk", flat=True)
    assert said.err.splitlines() == [
        f"run {first} succeeded",
        f"reporter: run {second} succeeded",
        f"reporter: run {third} succeeded",
    ]


def test_following_in_json_prints_an_object_for_each_line(durable_fleet: Fleet):
    job = durable_fleet.start(durable_fleet.enqueue(durable_fleet.agent()))
    printed(job.run_id, (OUT, b"one\n"), (ERR, b"two\n"))
    durable_fleet.finish(job)
    lines = call("logs", "-f", "--json").out.splitlines()
    assert len(lines) == 2 and '"text": "two"' in lines[1]


def test_retries_are_followed_until_the_work_item_has_ended(durable_fleet: Fleet, monkeypatch):
    agent = durable_fleet.agent(retries=1)
    item = durable_fleet.enqueue(agent)
    first = durable_fleet.start(item)
    durable_fleet.finish(first, "failed")

    def meanwhile(_: float) -> None:
        assert dispatch.admit_waiting(agent.pk, at(minutes=5)) == 1

    monkeypatch.setattr("agents_app.output.progress.sleep", meanwhile)
    runs = progress.runs_of_work_item(item.pk)
    assert next(runs) == first.run_id
    second = next(runs)
    assert second != first.run_id
    durable_fleet.finish(durable_fleet.start(item, at(minutes=5)), now=at(minutes=6))
    assert list(runs) == []
    assert Run.objects.get(pk=second).state == "succeeded"


def test_several_agents_are_followed_with_the_runs_that_start_meanwhile(
    durable_fleet: Fleet, monkeypatch
):
    first = durable_fleet.start(durable_fleet.enqueue(durable_fleet.agent()))
    other = durable_fleet.agent("other")
    printed(first.run_id, (OUT, b"one\nand a "))

    def step() -> Iterator[None]:
        # It begins and ends between two polls.
        brief = durable_fleet.start(durable_fleet.enqueue(other))
        printed(brief.run_id, (OUT, b"two\n"))
        durable_fleet.finish(brief)
        yield
        printed(first.run_id, (OUT, b"half"))
        durable_fleet.finish(first)
        yield
        raise KeyboardInterrupt

    steps = step()
    monkeypatch.setattr("agents_app.cli.followed_runs.sleep", lambda _: next(steps))
    said = call("logs", "-f", "--all")
    assert said.code == 0
    numbers = (first.run_id, Run.objects.latest("pk").pk)
    assert said.out == (
        f"reporter {numbers[0]} | one\n"
        f"other    {numbers[1]} | two\n"
        f"reporter {numbers[0]} | and a half\n"
    )
    assert said.err == f"other: run {numbers[1]} succeeded\nreporter: run {numbers[0]} succeeded\n"


def test_the_json_of_several_agents_names_the_agent_of_each_output(durable_fleet: Fleet):
    printed(running(durable_fleet), (OUT, b"one\n"))
    printed(running(durable_fleet, "other"), (OUT, b"two\n"))
    runs = call("logs", "other", "reporter", "--json").json["runs"]
    assert [(run["agent"], run["output"][0]["text"]) for run in runs] == [
        ("other", "two"),
        ("reporter", "one"),
    ]


def test_all_and_names_contradict_each_other(durable_fleet: Fleet):
    durable_fleet.agent()
    assert "leave out --all" in call("logs", "reporter", "--all").err
    assert call("logs", "reporter", "reprter").err.startswith("there is no agent 'reprter'; did")

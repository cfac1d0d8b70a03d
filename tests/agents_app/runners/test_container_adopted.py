"""Containers whose worker died or whose engine stopped, and containers with much output."""

import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from agents_app.runners.base import verdict
from agents_app.runners.containers.engine import ContainerState, DockerClient
from tests.agents_app.runners.containers import Contained, NewContained
from tests.parts.docker_part import DockerEngine
from tests.parts.waiting import wait_for

COUNT = "for i in $(seq 0 19); do echo line $i; sleep 0.1; done; echo oh >&2; exit 5"


def test_another_runner_adopts_a_container_and_reads_its_output_from_the_start(
    contained: NewContained,
):
    """F2, as far as the runner goes: two look at one container here, and both see it all."""
    run = contained(COUNT).start()
    other = run.adopted().join()
    run.join()
    assert other.outcome.kind == "exited" and other.outcome.exit_code == 5
    assert other.sink.text(1) == b"".join(b"line %d\n" % n for n in range(20))
    assert other.sink.text(2) == b"oh\n"


class LateEngine(DockerClient):
    """Reports the end of a container only after another runner is done with the container."""

    def __init__(self, url: str, is_done: Callable[[], bool]) -> None:
        super().__init__(url)
        self._is_done = is_done

    def state(self, container: str) -> ContainerState | None:
        found = super().state(container)
        if found is None or found.running:
            return found
        wait_for(self._is_done)
        return super().state(container)


@pytest.mark.parametrize("script", [COUNT, "echo line 0; echo oh >&2; exit 5"])
def test_an_adopter_that_is_late_still_learns_exit_code_and_output(
    contained: NewContained, docker_engine: DockerEngine, script: str
):
    """Guard: a runner keeps the ended container until the end is recorded. If it removes the
    container before, the adopter has seen the end of the output, asks for the exit code, and
    the outcome is `lost`; of the short script it has not even read the output."""
    run = contained(script).start()
    other = run.adopted(engine=LateEngine(docker_engine.url, lambda: run.ended)).join()
    run.join()
    assert (other.outcome.kind, other.outcome.exit_code) == ("exited", 5)
    assert (other.sink.text(1), other.sink.text(2)) == (run.sink.text(1), b"oh\n")
    assert other.sink.text(1).startswith(b"line 0\n")


def test_a_container_that_ended_in_time_is_not_timed_out_by_a_late_adopter(
    contained: NewContained,
):
    """Guard: the time limit of an adopter that finds an ended container. Without it a program
    that ended before its deadline is `timed_out` if its worker died and the next came late."""
    run = contained("echo in time").start().join()
    other = run.adopted(left_seconds=0.0).join()
    assert (other.outcome.kind, other.outcome.exit_code) == ("exited", 0)
    assert other.sink.text(1) == b"in time\n"


def test_the_container_of_a_hook_is_removed_at_its_end(contained: NewContained):
    """Guard: only the container of the run's own program is kept for adoption."""
    run = contained("echo hook")
    run.spec = replace(run.spec, adoptable=False)
    assert run.run().outcome.exit_code == 0
    assert run.left() == []


def test_an_adopted_container_has_only_the_rest_of_its_time(contained: NewContained):
    run = contained("echo on; sleep 300", timeout=300).start()
    other = run.adopted(left_seconds=0.5).join()
    assert (other.outcome.kind, other.outcome.error) == ("timed_out", "timed out after 300 s")


def test_a_container_that_is_gone_is_lost(contained: NewContained):
    run = contained("sleep 300")
    run.control.container = "0" * 64
    other = run.adopted().join()
    assert verdict(other.outcome).state == "lost"
    assert other.outcome.error == "lost: the container was removed, but not by Drover"


def test_a_gigabyte_of_output_does_not_block_and_is_not_kept_in_memory(contained: NewContained):
    """F33, with a fifth of it; the whole is in the benchmarks. F34: it is one line."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = contained("head -c 200000000 /dev/zero | tr '\\0' x", timeout=100).run()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert run.outcome.exit_code == 0
    text = run.sink.text(1)
    assert run.sink.buffer.left_out_bytes + len(text) == 200_000_000
    assert 11_000_000 - 64 * 1024 <= len(text) <= 11_000_000
    assert grown < 100_000


# --- an engine that goes away ---------------------------------------------------------------


@pytest.fixture(scope="module")
def fragile() -> Iterator[DockerEngine]:
    """An engine of this module's own, to be hurt."""
    engine = DockerEngine()
    yield engine.create()
    engine.remove()


@pytest.fixture
def fragile_run(tmp_path, fragile: DockerEngine) -> Iterator[NewContained]:
    made: list[Contained] = []

    def make(script: str, **options) -> Contained:
        made.append(Contained(tmp_path, fragile, "sh", "-c", script, **options))
        return made[-1]

    yield make
    if fragile.process is None or fragile.process.poll() is not None:
        fragile.start()
    for program in made:
        program.control.stop("the test is over", grace_seconds=0)
        program.join(60)


def test_without_an_engine_the_outcome_is_unavailable_with_the_reason(
    fragile: DockerEngine, fragile_run: NewContained
):
    """F40."""
    fragile.stop()
    began = time.monotonic()
    outcome = fragile_run("echo never").run().outcome
    assert outcome.kind == "unavailable"
    assert outcome.error.startswith("docker_unavailable: ")
    assert time.monotonic() - began < 2
    fragile.start()
    assert fragile_run("echo back").run().sink.text(1) == b"back\n"


def test_a_run_survives_a_killed_engine_with_its_output(
    fragile: DockerEngine, fragile_run: NewContained
):
    """F41: without live-restore the engine ends what it finds when it comes back: lost."""
    run = fragile_run("echo on; sleep 300").start()
    run.container()
    wait_for(lambda: run.sink.segments)
    fragile.kill()
    time.sleep(1)
    assert not run.ended  # the stopped engine cannot report the end
    fragile.start()
    run.join(30)
    assert run.outcome.kind == "lost"
    assert run.sink.text(1) == b"on\n"
    assert run.left() == []


def test_a_timeout_during_an_engine_outage_is_enforced_afterwards(
    fragile: DockerEngine, fragile_run: NewContained
):
    run = fragile_run("sleep 300", grace=1).start()
    run.container()
    fragile.freeze()
    run.control.stop("enough")
    time.sleep(1)
    assert not run.ended
    fragile.thaw()
    run.join(30)
    assert run.outcome.kind == "stopped"
    run.remove_kept()
    assert run.left() == []

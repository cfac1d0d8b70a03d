"""The output of programs arrives complete, in order and in time, and never blocks the run."""

import threading
from itertools import pairwise

import psutil
import pytest

from tests.agents_app.runners.programs import Shell
from tests.parts.processes import is_gone

pytestmark = pytest.mark.usefixtures("nothing_leaks")
MOST_MEMORY = 100_000_000


def test_both_streams_keep_their_bytes_and_order(shell: Shell):
    script = "for i in 1 2 3 4; do echo out$i; sleep 0.05; echo err$i >&2; sleep 0.05; done"
    program = shell(script).run()
    assert program.sink.text() == b"".join(b"out%d\nerr%d\n" % (i, i) for i in range(1, 5))
    times = [segment.at for segment in program.sink.segments]
    assert times == sorted(times)
    assert times[-1] - times[0] > 0.25


def test_every_byte_value_survives(shell: Shell):
    program = shell("cat prompt prompt")
    program.spec.prompt_file.write_bytes(bytes(range(256)) * 1000)
    assert program.run().sink.text() == bytes(range(256)) * 2000


def test_output_is_flushed_at_most_twice_a_second(shell: Shell):
    program = shell("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; sleep 0.1; done").run()
    flushed_at = program.sink.flushed_at
    assert len(flushed_at) >= 2
    assert all(later - earlier >= 0.5 for earlier, later in pairwise(flushed_at))


def test_a_short_run_is_never_flushed(shell: Shell):
    assert shell("echo hi").run().sink.flushed_at == []


class PeakMemory:
    """Measures by how many bytes the memory of this process grows at most."""

    def __enter__(self) -> "PeakMemory":
        self._this = psutil.Process()
        self._before = self._peak = self._this.memory_info().rss
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def growth(self) -> int:
        return self._peak - self._before

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self._peak = max(self._peak, self._this.memory_info().rss)


@pytest.mark.fault("F33")
def test_a_gigabyte_is_drained_fast_and_kept_in_bounds(shell: Shell):
    with PeakMemory() as memory:
        program = shell("head -c 1000000000 /dev/zero; echo end").run()
    assert memory.growth < MOST_MEMORY
    assert program.outcome.exit_code == 0
    assert program.took_seconds < 10
    assert len(program.sink.text()) == 11_000_000
    assert program.sink.segments[-1].data.endswith(b"end\n")
    assert program.sink.buffer.left_out_bytes == 1_000_000_004 - 11_000_000


@pytest.mark.fault("F34")
def test_one_line_of_100_mb_is_no_problem(shell: Shell):
    with PeakMemory() as memory:
        program = shell("head -c 100000000 /dev/zero | tr '\\0' x").run()
    assert memory.growth < MOST_MEMORY
    assert program.outcome.exit_code == 0
    assert len(program.sink.text()) == 11_000_000


@pytest.mark.fault("F36")
def test_a_program_that_closes_its_output_runs_on_until_it_exits(shell: Shell):
    program = shell("exec >&- 2>&-; sleep 0.5; exit 7").run()
    assert program.outcome.exit_code == 7
    assert program.took_seconds >= 0.5


@pytest.mark.parametrize("how", ["sleep 300 &", "setsid sleep 300 &", "yes &"])
@pytest.mark.fault("F37")
def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_run(shell: Shell, how):
    program = shell(f"{how} echo $! > pid; echo done; exit 3").run()
    assert program.outcome.exit_code == 3
    assert program.took_seconds < 2
    assert b"done\n" in program.sink.text()
    assert is_gone(program.noted_pid())


def test_the_last_lines_of_a_slower_helper_are_not_lost(shell: Shell):
    program = shell("(sleep 0.1; echo last) & echo first").run()
    assert program.sink.text() == b"first\nlast\n"

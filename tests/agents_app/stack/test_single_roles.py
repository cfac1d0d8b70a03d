"""Single processes of a stack, as fault tests start and kill them."""

import signal

from tests.agents_app.stack.test_up import WAITER, get
from tests.parts.fixtures import NewStack
from tests.parts.processes import is_gone, tree_of
from tests.parts.redis_part import RedisServer


def test_the_gateway_alone_answers(new_stack: NewStack, redis_server: RedisServer) -> None:
    stack = new_stack(redis_url=redis_server.url)
    stack.start("gateway")
    assert get(f"{stack.url}/healthz")[0] == 200
    assert get(f"{stack.url}/readyz")[0] == 503
    # uvicorn shuts down and then ends by the signal that it received.
    assert stack.stop("gateway") == -signal.SIGTERM


def test_a_worker_and_beat_without_supervisor_run_an_agent(new_stack: NewStack) -> None:
    stack = new_stack()
    finish = stack.data / "finish"
    stack.write_agent("waiter", WAITER.format(file=finish))
    for name in ("redis", "worker-1", "beat"):
        stack.start(name)
    stack.wait_for_rows("SELECT 1 FROM drover_run WHERE state = 'running'")
    finish.touch()
    stack.wait_for_rows("SELECT 1 FROM drover_run WHERE state = 'succeeded'")
    assert stack.stop("beat") == 0
    assert stack.stop("worker-1") == 0


def test_a_guard_that_gets_sigquit_ends_the_worker_and_its_run(new_stack: NewStack) -> None:
    stack = new_stack()
    stack.write_agent("waiter", WAITER.format(file="/nowhere"))
    for name in ("redis", "worker-1", "beat"):
        stack.start(name)
    (run,) = stack.wait_for_rows("SELECT pid FROM drover_run WHERE pid IS NOT NULL")
    worker = tree_of(stack.processes["worker-1"].pid)[1]
    stack.processes["worker-1"].send_signal(signal.SIGQUIT)
    stack.processes["worker-1"].wait(10)
    assert is_gone(worker)
    assert is_gone(run["pid"])

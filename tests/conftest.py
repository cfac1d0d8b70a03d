"""What every test may ask for; the parts themselves live in tests/parts."""

import signal

import pytest

pytest_plugins = ["tests.parts.fixtures"]

# A shell makes what it starts in the background ignore these, and that is inherited for ever.
for _number, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

# Of these directories each file waits for real processes.
TAKE_LONG = {"faults", "end_to_end", "browser", "races", "upgrade"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take longest begin first: the last to begin keeps all other processes waiting."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, not TAKE_LONG & {*item.path.parts}))

"""What every test may ask for; the parts themselves live in tests/parts."""

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

pytest_plugins = ["tests.parts.fixtures"]

# A shell makes what it starts in the background ignore these, and that is inherited for ever.
for _number, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

# Limits of time fail on a busy machine; tests/benchmarks measures speed.
settings.register_profile("drover", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("drover")

# Of these directories each file waits for real processes.
TAKE_LONG = {"faults", "end_to_end", "browser", "races", "upgrade"}
BROWSER = "tests/browser/"
# Fixtures for stacks: a test that starts one takes seconds.
STACKS = {"new_stack", "new_shared_stack"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that start a stack as slow. Files that take longest begin first: the last to begin
    keeps all other processes waiting."""
    _leave_out_other_database(config, items)
    for item in items:
        if STACKS & {*getattr(item, "fixturenames", ())}:
            item.add_marker("slow")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in slow, not TAKE_LONG & {*item.path.parts}))


def _leave_out_other_database(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Apply `collect_ignore` also to files that are named on the command line.

    pytest collects such a file; its tests would fail on a database that they are not for."""
    ignored = {
        Path(conftest.__file__).parent / name
        for conftest in config.pluginmanager.get_plugins()
        for name in getattr(conftest, "collect_ignore", ())
    }
    left_out = [item for item in items if ignored & {item.path, *item.path.parents}]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


class OneDroverForAllBrowserTests(LoadFileScheduling):
    """A file is run by one process, and all files of tests/browser by the same process."""

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        return BROWSER if scope.startswith(BROWSER) else scope


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Files of tests/browser share a Drover and a Chromium, which each process would start."""
    if config.getoption("dist") != "loadfile":
        return None
    return OneDroverForAllBrowserTests(config, log)

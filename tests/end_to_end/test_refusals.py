"""`manage.py up` refuses a bad configuration with one line and an exit code that is not 0."""

import socket
from pathlib import Path

import pytest

from tests.parts.stack_part import PrivateStack


def refusal(stack: PrivateStack) -> str:
    done = stack.manage("up")
    assert done.returncode not in (0, None), done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    """Guard: ports are checked before processes start. Without that uvicorn fails three times and
    prints its own lines each time."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        stack = PrivateStack(tmp_path, DROVER_PORT=port)
        assert refusal(stack) == f"drover: port {port} is in use. Set DROVER_PORT to a free port."


# One for each place that refuses; the tests of conf, preflight and checks have the other values.
@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"DATABASE_URL": "mysql://u:canary@h/x"}, "DATABASE_URL starts with 'mysql'"),
        ({"DATABASE_URL": "postgresql://u:canary@127.0.0.1:1/x"}, "cannot open the database"),
        ({"DATABASE_URL": "sqlite:////nowhere/x.sqlite3"}, "unable to open database file"),
        ({"DROVER_PROJECT": "/nowhere"}, "project directory /nowhere does not exist"),
        ({"DROVER_LEASE_SECONDS": "5"}, "DROVER_MISSED_HEARTBEATS"),
        ({"REDIS_URL": "http://localhost"}, "REDIS_URL"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_invalid_setting_is_refused(
    tmp_path: Path, variables: dict[str, str], says: str
) -> None:
    """Guard: settings are checked before Django is loaded. Otherwise the error is a traceback, or a
    stack that runs and does nothing."""
    line = refusal(PrivateStack(tmp_path, **variables))
    assert line.startswith("drover: ")
    assert says in line
    assert "canary" not in line


def test_an_unusable_data_directory_is_refused(tmp_path: Path) -> None:
    """Guard: as above. Root may write to every directory, so the parent is a file."""
    file = tmp_path / "file"
    file.touch()
    data = str(file / "data")
    assert data in refusal(PrivateStack(tmp_path / "s", DROVER_DATA=data))

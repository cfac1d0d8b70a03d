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


@pytest.mark.parametrize("variable", ["DROVER_PORT", "DROVER_FLOWER_PORT"])
def test_a_port_in_use_is_refused(tmp_path: Path, variable: str) -> None:
    """Guard: ports are checked before processes start. Without that uvicorn fails three times and
    prints its own lines each time."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        stack = PrivateStack(tmp_path, DROVER_FLOWER="yes", **{variable: port})
        expected = f"drover: port {port} is in use. Set {variable} to a free port."
        assert refusal(stack) == expected


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"DATABASE_URL": "oracle://u:canary@h/x"}, "DATABASE_URL starts with 'oracle'"),
        ({"DATABASE_URL": "postgresql://u:canary@h:port/x"}, "DATABASE_URL: "),
        ({"DROVER_PROJECT": "/nowhere/at/all"}, "/nowhere/at/all does not exist"),
        ({"DROVER_RENEW_SECONDS": "nan"}, "DROVER_RENEW_SECONDS='nan'"),
        ({"DROVER_LEASE_SECONDS": "5", "DROVER_RENEW_SECONDS": "10"}, "DROVER_RENEW_SECONDS"),
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


@pytest.mark.parametrize("what", ["below a file", "a missing disk"])
def test_an_unusable_data_directory_is_refused(tmp_path: Path, what: str) -> None:
    """Guard: as above. Root may write to every directory, so these paths are no directories."""
    file = tmp_path / "file"
    file.touch()
    data = {"below a file": file / "data", "a missing disk": Path("/proc/disk")}
    assert str(data[what]) in refusal(PrivateStack(tmp_path / "s", DROVER_DATA=str(data[what])))

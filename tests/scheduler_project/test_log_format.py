"""Log lines: one JSON object each, the same in each output, and files of a limited size."""

import json
import logging
import subprocess
import sys

from agents_app.conf import ROOT
from scheduler_project.log_format import PrivateLogFile

LINES = """
import logging, structlog, django
django.setup()
log = structlog.get_logger("drover.example")
log.info("run.started", run_id=7, agent="a", size=object)
logging.getLogger("library").warning("from %s", "a library")
log.info("run.ended", detail="ghp_" + "x" * 36)
try:
    raise ValueError("wrong")
except ValueError:
    log.exception("run.not_performed")
"""


def test_file_and_standard_error_have_the_same_objects_without_secrets(tmp_path):
    env = {"DROVER_ROLE": "example", "DROVER_DATA": str(tmp_path), "DROVER_LOG_FORMAT": "json"}
    env |= {"DJANGO_SETTINGS_MODULE": "scheduler_project.settings", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", LINES], env=env, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "logs" / "example.log").read_text()
    assert done.stderr == text
    own, library, secret, error = map(json.loads, text.splitlines())
    assert own["event"] == "run.started"
    assert (own["run_id"], own["agent"], own["size"]) == (7, "a", "<class 'object'>")
    assert (own["level"], own["logger"]) == ("info", "drover.example")
    assert own["timestamp"].endswith("Z")
    assert (library["event"], library["level"]) == ("from a library", "warning")
    assert library["logger"] == "library"
    assert secret["detail"] == "[redacted GitHub token]"
    assert "ValueError: wrong" in error["exception"]


def test_a_log_file_is_replaced_when_it_is_full_also_after_a_restart(tmp_path):
    path = tmp_path / "worker.log"
    for _start in range(2):
        handler = PrivateLogFile(str(path), maxBytes=1000, backupCount=2, delay=True)
        for number in range(12):
            handler.emit(logging.makeLogRecord({"msg": f"{number:02} " + "x" * 96}))
        handler.close()
    sizes = [file.stat().st_size for file in sorted(tmp_path.iterdir())]
    assert len(sizes) == 3
    assert max(sizes) <= 1000
    lines = [file.read_text().splitlines() for file in (path.with_suffix(".log.2"), path)]
    assert lines[1][-1].startswith("11")
    assert path.stat().st_mode & 0o777 == 0o600

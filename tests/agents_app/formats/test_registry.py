"""Every format is recognised by its content, and read through the table of formats."""

import json
from pathlib import Path

import pytest

from agents_app.errors import Refused
from agents_app.formats.registry import read_source
from agents_app.formats.source_files import open_source
from tests.agents_app.formats.reading import CONTEXT

GENIE = [{"name": "a", "cron_expression": "0 9 * * *", "command": "true"}]
ARBITER = {"schedules": [{"schedule_phrase": "every day at 09:00", "message": "m"}]}
WORKFLOW = "on: {schedule: [{cron: '0 8 * * *'}]}\njobs: {}\n"
TIMER = {
    "a.timer": "[Timer]\nOnCalendar=daily\n",
    "a.service": "[Service]\nExecStart=/bin/true\n",
}
SCRIPT = "#!/bin/sh\nwhile true; do\n  claude -p 'Triage'\n  sleep 1h\ndone\n"
CASES = [
    ("genie", {"x.json": json.dumps(GENIE)}, "x.json"),
    ("arbiter", {"x.json": json.dumps(ARBITER)}, "x.json"),
    ("systemd", TIMER, "."),
    ("systemd", TIMER, "a.timer"),
    ("github-actions", {".github/workflows/a.yml": WORKFLOW, "b.yml": "x: 1\n"}, "."),
    ("github-actions", {".github/workflows/a.yml": WORKFLOW}, ".github/workflows"),
    ("github-actions", {"a.yaml": WORKFLOW}, "a.yaml"),
    ("shell-script", {"a.sh": SCRIPT}, "a.sh"),
    ("crontab", {"a": "0 9 * * * true\n"}, "a"),
    ("system-crontab", {"a": "0 9 * * * root true\n"}, "a"),
]


@pytest.mark.parametrize(("name", "files", "source"), CASES)
def test_a_source_is_recognised_and_read(tmp_path: Path, name, files, source):
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found_name, found = read_source(open_source(str(tmp_path / source), bytes), CONTEXT)
    assert (found_name, len(found.agents), found.errors) == (name, 1, ())


def test_other_json_is_refused(tmp_path: Path):
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(Refused, match="none of the formats"):
        read_source(open_source(str(tmp_path / "x.json"), bytes), CONTEXT)


def test_a_timer_cannot_name_a_service_elsewhere(tmp_path: Path):
    (tmp_path / "units").mkdir()
    (tmp_path / "b.service").write_text("[Service]\nExecStart=/bin/true\n")
    (tmp_path / "units/a.timer").write_text("[Timer]\nOnCalendar=daily\nUnit=../b.service\n")
    _, found = read_source(open_source(str(tmp_path / "units"), bytes), CONTEXT)
    assert (found.agents, [error.field for error in found.errors]) == ((), ["Unit"])

"""Every format is recognised by its content, and read through the table of formats."""

from pathlib import Path

import pytest

from agents_app.errors import Refused
from agents_app.formats.registry import read_source
from agents_app.formats.source_files import open_source
from tests.agents_app.formats.reading import CONTEXT
from tests.agents_app.formats.small_sources import CASES, TIMER
from tests.agents_app.formats.written import write


@pytest.mark.parametrize(("name", "files", "source"), CASES)
def test_a_source_is_recognised_and_read(tmp_path: Path, name, files, source):
    write(tmp_path, files)
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


def test_drop_ins_of_units_are_reported(tmp_path: Path):
    (tmp_path / "a.timer").write_text(TIMER["a.timer"])
    (tmp_path / "a.service").write_text(TIMER["a.service"])
    (tmp_path / "a.timer.d").mkdir()
    for source in (tmp_path, tmp_path / "a.timer"):
        _, found = read_source(open_source(str(source), bytes), CONTEXT)
        assert [line.file for line in found.report] == ["a.timer.d"]
        assert len(found.agents) == 1


def test_a_format_can_be_chosen_and_must_fit(tmp_path: Path):
    (tmp_path / "x").write_text("0 9 * * * deploy true\n")
    source = open_source(str(tmp_path / "x"), bytes)
    assert read_source(source, CONTEXT, "system-crontab")[1].agents[0].name == "true"
    with pytest.raises(Refused, match="is not a directory"):
        read_source(source, CONTEXT, "herdctl")

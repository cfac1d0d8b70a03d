"""Reads the lines of a systemd unit: sections, keys, continued lines and comments."""

from collections.abc import Iterator
from dataclasses import dataclass

from agents_app.formats.report import ReportLine
from agents_app.formats.source_files import MAX_LINE, TOO_LONG


@dataclass(frozen=True, slots=True)
class UnitSetting:
    section: str
    key: str
    value: str
    line: int


def read_unit(file: str, text: str, errors: list[ReportLine]) -> list[UnitSetting]:
    """The settings in order; an empty value resets a list, as in systemd."""
    found: list[UnitSetting] = []
    section = ""
    for number, line in _joined_lines(text):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            continue
        if len(line) > MAX_LINE:
            advice = "move the command to a script"
            errors.append(ReportLine(file, number, "line", TOO_LONG, advice))
            continue
        key, equals, value = line.partition("=")
        if not equals or not section or not line.replace("\t", " ").isprintable():
            why = "expected [Section] or Key=value"
            errors.append(ReportLine(file, number, "line", why, "correct it; systemd ignores it"))
            continue
        if not value.strip():
            found = [one for one in found if (one.section, one.key) != (section, key.strip())]
        else:
            found.append(UnitSetting(section, key.strip(), value.strip(), number))
    return found


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that end with a backslash are continued on the next line that is not a comment."""
    start, joined = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if stripped[:1] in ("#", ";") or (not stripped and not joined):
            continue
        start = start or number
        if stripped.endswith("\\"):
            joined += stripped[:-1] + " "
            continue
        if joined + stripped:
            yield start, joined + stripped
        start, joined = 0, ""
    if joined.strip():
        yield start, joined.strip()

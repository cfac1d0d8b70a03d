"""The interface of a format: how a source is recognised, and its reader."""

from collections.abc import Callable
from dataclasses import dataclass

from agents_app.formats.imported import ImportContext, Imported
from agents_app.formats.source_files import Source


@dataclass(frozen=True, slots=True)
class Format:
    """`fits` says whether a source is in this format; `read` returns its agents.

    A format that `is_project` is a directory that Drover can also run as it is.
    A part that cannot be read is among the errors, with its file and line, and never raises."""

    title: str
    fits: Callable[[Source, ImportContext], bool]
    read: Callable[[Source, ImportContext], Imported]
    is_project: bool = False


def text_format(
    title: str,
    fits: Callable[[str, str], bool],
    read: Callable[[str, str, ImportContext], Imported],
) -> Format:
    """A format of single files; both functions take the name and the text of the file."""

    def fits_source(source: Source, _context: ImportContext) -> bool:
        file = source.only
        return file is not None and fits(file.name, file.text)

    def read_source(source: Source, context: ImportContext) -> Imported:
        file = source.only
        return read(file.name, file.text, context) if file else Imported()

    return Format(title, fits_source, read_source)

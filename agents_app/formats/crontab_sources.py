"""Where crontabs are: files of users, the file of the system, and the directory cron.d."""

import re

from agents_app.formats.base import Format
from agents_app.formats.crontab import is_system_crontab, read_crontab
from agents_app.formats.imported import ImportContext, Imported
from agents_app.formats.json_items import looks_like_json
from agents_app.formats.report import ReportLine
from agents_app.formats.source_files import Source, printable

_CRON_D_NAME = re.compile(r"[A-Za-z0-9_-]+")


def _is_system(source: Source, context: ImportContext) -> bool:
    if source.is_directory:
        return source.path is not None and source.path.name == "cron.d"
    if source.path is not None and (
        str(source.path) == "/etc/crontab" or source.path.parent.name == "cron.d"
    ):
        return True
    file = source.only
    return file is not None and is_system_crontab(file.text, context.users)


def _read_system(source: Source, context: ImportContext) -> Imported:
    if source.is_directory:
        return _read_cron_d(source, context)
    file = source.only
    return read_crontab(file.name, file.text, context, system=True) if file else Imported()


def _read_cron_d(source: Source, context: ImportContext) -> Imported:
    """Every file of the directory; cron ignores names with other characters, such as `a.bak`."""
    found = Imported()
    for name in source.names:
        if not _CRON_D_NAME.fullmatch(name):
            why = "cron ignores files whose names have other characters than letters, digits, _, -"
            line = ReportLine(printable(name), 0, "file", why, "nothing, or rename the file")
            found += Imported(report=(line,))
        elif file := source.file(name):
            found += read_crontab(file.name, file.text, context, system=True, prefix=name)
    return found


def _is_other_text(source: Source, _context: ImportContext) -> bool:
    """A file that cannot be read fits, too: the reader of the source has reported it."""
    if source.is_directory:
        return False
    file = source.only
    return file is None or not looks_like_json(file.text)


def _read_user(source: Source, context: ImportContext) -> Imported:
    file = source.only
    return read_crontab(file.name, file.text, context, system=False) if file else Imported()


SYSTEM_CRONTAB = Format("system crontab", _is_system, _read_system)
CRONTAB = Format("crontab of a user", _is_other_text, _read_user)

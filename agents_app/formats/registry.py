"""The formats that can be imported, in the order in which they are tried."""

from agents_app.errors import Refused
from agents_app.formats.arbiter import ARBITER
from agents_app.formats.base import Format
from agents_app.formats.crontab_sources import CRONTAB, SYSTEM_CRONTAB
from agents_app.formats.genie import GENIE
from agents_app.formats.github_actions import GITHUB_ACTIONS
from agents_app.formats.imported import ImportContext, Imported
from agents_app.formats.projects import ACTION_LLAMA_PROJECT, HERDCTL_PROJECT
from agents_app.formats.shell_scripts import SHELL_SCRIPT
from agents_app.formats.source_files import Source
from agents_app.formats.systemd import SYSTEMD

# A format is one module with a reader and one entry here. Formats of whole project directories are
# at the top, because a project may also contain workflows; `crontab` takes every other text.
FORMATS: dict[str, Format] = {
    "herdctl": HERDCTL_PROJECT,
    "action-llama": ACTION_LLAMA_PROJECT,
    "genie": GENIE,
    "arbiter": ARBITER,
    "systemd": SYSTEMD,
    "github-actions": GITHUB_ACTIONS,
    "shell-script": SHELL_SCRIPT,
    "system-crontab": SYSTEM_CRONTAB,
    "crontab": CRONTAB,
}


def read_source(source: Source, context: ImportContext, name: str = "") -> tuple[str, Imported]:
    """The name of the format and the content; files that cannot be read are among the errors."""
    chosen = name or next((n for n, each in FORMATS.items() if each.fits(source, context)), "")
    if not chosen:
        raise Refused(
            f"{source.title} is in none of the formats that can be imported "
            f"({', '.join(FORMATS)}); name a file of it, or the format with --format"
        )
    found = FORMATS[chosen].read(source, context)
    return chosen, found + Imported(errors=tuple(source.problems))

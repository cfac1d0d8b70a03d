"""Files in a directory: `todo/`, `doing/`, `done/` and `failed/`; a file moves by renaming it.

Renaming is atomic: of several Drovers that rename one file, one succeeds. The name in `doing/`
contains the token of the claim, so that an interrupted claim finds its file.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath

from agents_app.work_sources.kinds.api import WorkSourceError
from agents_app.work_sources.kinds.contract import (
    Candidate,
    ClaimMark,
    ClaimResult,
    Fetched,
    FetchOptions,
    ItemReport,
    SourceAccess,
    SourceKind,
    WorkDetails,
)
from agents_app.work_sources.kinds.settings import Attempts, FolderPath

TODO, DOING, DONE, FAILED = FOLDERS = ("todo", "doing", "done", "failed")
REPORT = ".result.md"
MOST_BYTES = 256 * 1024
_ID = "file-"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectorySettings:
    path: FolderPath
    # Failed files are in `failed/`, where a person finds them; they are not tried again.
    max_attempts: Attempts = 1
    cleanup_on_failure: bool = True


class FileDirectory:
    def __init__(self, settings: DirectorySettings, access: SourceAccess) -> None:
        self.settings = settings
        self.now = access.now
        self.root = access.project / Path(settings.path).expanduser()

    def fetch(self, options: FetchOptions) -> Fetched:
        found = sorted(self._files(), key=lambda file: (file[1], file[0]))
        candidates = [
            Candidate(id=f"{_ID}{name}", title=name, created_at=_written(seconds))
            for name, seconds in found[: options.limit]
        ]
        return Fetched(candidates=tuple(candidates), at=self.now())

    def _files(self) -> Iterator[tuple[str, float]]:
        """The regular files in `todo/` with the time of their last change, hidden ones excepted."""
        try:
            with os.scandir(self.root / TODO) as entries:
                for entry in entries:
                    if not entry.name.startswith(".") and entry.is_file(follow_symlinks=False):
                        yield entry.name, entry.stat(follow_symlinks=False).st_mtime
        except FileNotFoundError:
            raise WorkSourceError(f"there is no directory {self.root / TODO}: create it") from None
        except OSError as error:
            raise WorkSourceError(f"{self.root / TODO}: {error.strerror}") from None

    # --- claiming ---------------------------------------------------------------------------

    def claim(
        self,
        item_id: str,
        token: str,
        /,
        *,
        only_ready: bool = True,  # noqa: ARG002 - a file is ready as long as it is in todo/
        again: bool = False,
    ) -> ClaimResult:
        name = _file_name(item_id)
        doing = self._doing(name, token)
        if again and doing.exists():
            return ClaimResult(True)
        try:
            self._make_folders()
            (self.root / TODO / name).rename(doing)
        except FileNotFoundError:
            return ClaimResult(False, "already_claimed", "the file is gone from todo/")
        except OSError as error:
            return ClaimResult(False, "source_error", f"{name}: {error.strerror}")
        return ClaimResult(True)

    def confirm(self, item_id: str, mark: ClaimMark) -> ClaimResult:
        name = _file_name(item_id)
        try:
            body = _read(self._doing(name, mark.token))
        except OSError as error:
            reason = f"{name} cannot be read: {error.strerror}"
            return ClaimResult(False, "not_found", reason, is_marked=True)
        item = Candidate(id=item_id, title=name)
        return ClaimResult(True, details=WorkDetails(item=item, body=body))

    # --- reporting --------------------------------------------------------------------------

    def complete(self, item_id: str, report: ItemReport) -> None:
        folder = DONE if report.outcome == "success" else FAILED
        name = self._move(item_id, report.mark.token, folder)
        if name:
            with suppress(OSError):
                (self.root / folder / f"{name}{REPORT}").write_text(report.text + "\n", "utf-8")

    def release(self, item_id: str, report: ItemReport) -> None:
        again = self.settings.cleanup_on_failure or report.interrupted
        self._move(item_id, report.mark.token, TODO if again else FAILED)

    def _move(self, item_id: str, token: str, folder: str) -> str:
        """The new name; empty if the file is gone, because an earlier attempt has moved it."""
        name = _file_name(item_id)
        doing = self._doing(name, token)
        new = name if not (self.root / folder / name).exists() else doing.name
        try:
            self._make_folders()
            doing.rename(self.root / folder / new)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise WorkSourceError(f"{doing}: {error.strerror}") from None
        return new

    def _doing(self, name: str, token: str) -> Path:
        path = PurePath(name)
        return self.root / DOING / f"{path.stem}.{token[:8]}{path.suffix}"

    def _make_folders(self) -> None:
        for folder in FOLDERS:
            (self.root / folder).mkdir(exist_ok=True)


def _file_name(item_id: str) -> str:
    name = item_id.removeprefix(_ID)
    if not item_id.startswith(_ID) or "/" in name or "\0" in name or name in {"", ".", ".."}:
        raise WorkSourceError(f"{item_id[:60]!r} is not the id of a file: expected file-NAME")
    return name


def _written(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _read(path: Path) -> str:
    """The beginning of the file; raises an OSError for a link or a file that is not regular."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is not a regular file")
        return os.read(descriptor, MOST_BYTES).decode(errors="replace")
    finally:
        os.close(descriptor)


DIRECTORY = SourceKind(
    settings=DirectorySettings,
    open=FileDirectory,
    name=lambda settings: settings.path,
    place=lambda settings: settings.path,
)

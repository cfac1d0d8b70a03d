"""Reads the files of a source: one file, a directory, or standard input."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from agents_app.errors import NotFound, Refused
from agents_app.formats.report import ReportLine

MAX_BYTES = 16 * 1024 * 1024
# Of a crontab, a unit or a script: the time to split a line into words grows with its square.
MAX_LINE = 10_000
TOO_LONG = f"has more than {MAX_LINE} characters"
STDIN = "-"
# A file that stands for the directory in which it is.
_CONFIG_OF_PROJECTS = ("herdctl.yaml", "herdctl.yml")
# Directories that are searched below the one that the user names.
_BELOW = ("", ".github/workflows")
_TEXT_BYTES = frozenset((*range(0x20, 0x7F), *range(0x80, 0x100), 9, 10, 13))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """The text of one file and its name in messages; invalid bytes are surrogates."""

    name: str
    text: str


@dataclass(slots=True)
class Source:
    """A file or directory to import; `problems` collects the files that could not be read."""

    id: str
    title: str
    path: Path | None
    names: tuple[str, ...]
    is_directory: bool = False
    problems: list[ReportLine] = field(default_factory=list)
    _read: dict[str, SourceFile | None] = field(default_factory=dict)

    def has(self, *patterns: str) -> bool:
        return any(fnmatch(name, pattern) for name in self.names for pattern in patterns)

    def files(self, *patterns: str) -> Iterator[SourceFile]:
        """The files whose names match, sorted by name; files that cannot be read are reported."""
        for name in self.names:
            if any(fnmatch(name, pattern) for pattern in patterns):
                file = self.file(name)
                if file is not None:
                    yield file

    def file(self, name: str) -> SourceFile | None:
        """The file of that name, or None if there is none, or it was reported."""
        if name not in self._read:
            self._read[name] = self._load(name)
        return self._read[name]

    @property
    def short_title(self) -> str:
        """Without directories: files that are written must not depend on where the user is."""
        return self.title if self.path is None else printable(Path(self.id).name or self.id)

    @property
    def only(self) -> SourceFile | None:
        """The file, if the source is one."""
        return None if self.is_directory else self.file(self.names[0])

    def _load(self, name: str) -> SourceFile | None:
        assert self.path is not None
        directory = self.path if self.is_directory else self.path.parent
        try:
            data = bytes_of(directory, directory / name, is_named=not self.is_directory)
        except FileNotFoundError:
            if name in self.names:
                self._report(name, "does not exist, or is a dangling symlink", "remove it")
            return None
        except (OSError, Refused) as error:
            said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            self._report(name, f"cannot be read: {said}", "make it readable, or leave it out")
            return None
        return self._decoded(name, data)

    def _decoded(self, name: str, data: bytes) -> SourceFile | None:
        if _is_binary(data):
            line = data.count(b"\n", 0, data.index(b"\0")) + 1
            self._report(name, "is a binary file", "import text files", line)
            return None
        text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        return SourceFile(self._label(name), text)

    def _label(self, name: str) -> str:
        """Files of a directory are named from there; a single file as the user has named it."""
        is_single = not self.is_directory and self.path is not None and name == self.path.name
        return self.title if is_single else printable(name)

    def _report(self, name: str, why: str, advice: str, line: int = 0) -> None:
        self.problems.append(ReportLine(self._label(name), line, "file", why, advice))


def open_source(text: str, read_stdin: Callable[[int], bytes]) -> Source:
    """The source that a user names; raises if there is none.

    `read_stdin` returns at most as many bytes as it is asked for."""
    if text == STDIN:
        source = Source("stdin", "standard input", None, ("standard input",))
        data = read_stdin(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise Refused(f"standard input has more than {MAX_BYTES} bytes; import a part of it")
        source._read["standard input"] = source._decoded("standard input", data)
        return source
    path = Path(text).absolute()
    if path.name in _CONFIG_OF_PROJECTS and path.is_file():
        path = path.parent
    try:
        is_directory = path.is_dir()
        path.lstat()
    except OSError as error:
        raise NotFound(f"{text}: {error.strerror}; name a file, a directory, or -") from None
    resolved = os.path.realpath(path)
    if is_directory:
        return Source(resolved, printable(text), Path(resolved), _listing(path), is_directory=True)
    return Source(resolved, printable(text), path, (path.name,))


def is_text(text: str) -> bool:
    """Whether the text has neither lone surrogates nor NUL, which no database stores."""
    return "\0" not in text and text == text.encode("utf-8", "replace").decode()


def printable(text: str) -> str:
    """A name of a file, which may contain any byte, for messages and comments."""
    clean = text.encode("utf-8", "backslashreplace").decode()
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in clean)


def _listing(directory: Path) -> tuple[str, ...]:
    names = []
    for below in _BELOW:
        try:
            with os.scandir(directory / below) as entries:
                prefix = f"{below}/" if below else ""
                names += [f"{prefix}{entry.name}" for entry in entries if not _is_directory(entry)]
        except FileNotFoundError:
            continue
        except OSError as error:
            if not below:
                raise Refused(f"{directory} cannot be listed: {error.strerror}") from None
    return tuple(sorted(names))


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def bytes_of(directory: Path, path: Path, *, is_named: bool) -> bytes:
    """The content of a regular file; a link that leads out of the directory is refused.

    The user may name a link; links inside a directory may be made by other people."""
    real = Path(os.path.realpath(path))
    if not is_named and not real.is_relative_to(os.path.realpath(directory)):
        raise Refused("it is a symlink out of the directory; import the file that it points to")
    # O_NONBLOCK: opening a FIFO must not wait for a writer.
    handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Refused("it is not a regular file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise Refused(f"it has more than {MAX_BYTES} bytes")
    return data


def _is_binary(data: bytes) -> bool:
    """A text with single NUL characters is read, so that its other lines are imported."""
    start = data[:4096]
    if b"\0" not in start:
        return False
    readable = sum(byte in _TEXT_BYTES for byte in start)
    return readable < 0.9 * len(start)

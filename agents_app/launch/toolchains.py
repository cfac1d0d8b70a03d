"""The directories that the programs on PATH need to run: the prefixes of pyenv, nvm, uv, cargo,
conda and the like in a home directory, never the whole home."""

import os
from collections.abc import Iterator
from pathlib import Path

# Directories of programs: the rest of the toolchain is beside them.
PROGRAM_DIRECTORIES = frozenset(("bin", "sbin", ".bin", "shims", "condabin"))
# Not whole: these directories hold the data of many programs, also secrets.
SHARED_PREFIXES = (".local", ".cargo", ".config")
BESIDE_PROGRAMS = {".local": ("lib", "lib64"), ".cargo": ("env",)}
RUSTUP = ".rustup"
# Where toolchains usually are in a home.
USUAL_TOOLCHAINS = (
    *(".pyenv", ".rbenv", ".nvm", ".volta", ".bun", ".deno", ".asdf", ".sdkman", ".npm-global"),
    *(".rustup", ".cargo/bin", ".local/bin", ".local/lib", ".local/share/uv", ".local/share/mise"),
    *("go", "miniconda3", "anaconda3", "miniforge3", "mambaforge"),
)
MAX_LINKS = 2000
PROGRAM_BEGINNINGS = (b"#!", b"\x7fELF")


def tool_paths(
    path: str, home: Path, system: tuple[str, ...], program: str = ""
) -> tuple[str, ...]:
    """What the programs in the directories of `path`, and a program that is named by its path,
    need outside of the `system` directories."""
    search = _ToolSearch(home.resolve(), system)
    for named in (program, os.path.realpath(program)) if program.startswith("/") else ():
        # Other programs are single files, for which the run has a rule of its own.
        if Path(named).parent.name in PROGRAM_DIRECTORIES:
            search.add_directory(Path(named).parent)
    for directory in path.split(os.pathsep):
        if directory.startswith("/"):
            search.add_directory(Path(directory))
    return tuple(search.found)


def tool_variables(path: str, home: Path) -> dict[str, str]:
    """Variables of tools that search for their toolchain in HOME, which a sandbox changes."""
    on_path = str(home / ".cargo" / "bin") in path.split(os.pathsep)
    rustup = home / RUSTUP
    return {"RUSTUP_HOME": str(rustup)} if on_path and rustup.is_dir() else {}


class _ToolSearch:
    def __init__(self, home: Path, system: tuple[str, ...]) -> None:
        self._home, self._system = home, tuple(map(os.path.realpath, system))
        self._seen: set[Path] = set()
        # A dict, because the order is that of PATH.
        self.found: dict[str, None] = {}

    def add_directory(self, directory: Path) -> None:
        """A directory of programs, with its toolchain and with what its links lead to."""
        real = Path(os.path.realpath(directory))
        if real in self._seen or self._is_system(real):
            return
        self._seen.add(real)
        self._add(real)
        if real.name in PROGRAM_DIRECTORIES:
            self._add_toolchain(real.parent)
        for target in _link_targets(real):
            self._add_program(target)

    def _add_program(self, program: Path) -> None:
        """A program of a toolchain, or a single file."""
        if self._is_system(program):
            return
        if program.parent.name in PROGRAM_DIRECTORIES:
            self.add_directory(program.parent)
        else:
            self._add(program)

    def _add_toolchain(self, prefix: Path) -> None:
        if prefix in (self._home / name for name in SHARED_PREFIXES):
            for name in BESIDE_PROGRAMS.get(prefix.name, ()):
                self._add(prefix / name)
            if prefix.name == ".cargo":
                self._add(self._home / RUSTUP)
        elif not self._home.is_relative_to(prefix):
            self._add(prefix)
            # A virtual environment: its interpreter is a link into another toolchain.
            for name in PROGRAM_DIRECTORIES:
                if (prefix / name) not in self._seen and (prefix / name).is_dir():
                    self.add_directory(prefix / name)

    def _add(self, path: Path) -> None:
        if path.exists():
            self.found[str(path)] = None

    def _is_system(self, path: Path) -> bool:
        return any(path.is_relative_to(top) for top in self._system)


def _link_targets(directory: Path) -> Iterator[Path]:
    try:
        links = [entry.path for entry in os.scandir(directory) if entry.is_symlink()]
    except OSError:
        return
    for link in links[:MAX_LINKS]:
        target = Path(os.path.realpath(link))
        if target.is_file() and _is_program(target):
            yield target


def _is_program(file: Path) -> bool:
    """By its beginning: a run can plant a link to a private file and set the mode of the file,
    but cannot change its contents."""
    try:
        with file.open("rb", buffering=0) as opened:
            return opened.read(4).startswith(PROGRAM_BEGINNINGS)
    except OSError:
        return False

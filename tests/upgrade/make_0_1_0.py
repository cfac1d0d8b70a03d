"""Makes the databases of version 0.1.0 for the upgrade tests, and the facts that must hold.

    git worktree add /srv/drover-0.1.0 475d4c4
    python tests/upgrade/make_0_1_0.py /srv/drover-0.1.0

The argument is a checkout of version 0.1.0 (commit 475d4c4). Run it as root, with the packages of
that checkout's requirements-dev.lock and a PostgreSQL server installed. The script starts the real
Drover of the checkout in /srv/drover, once on SQLite and once on PostgreSQL, lets it run the
project in tests/upgrade/fleet (scenario.py says what happens), shuts it down, and writes to
tests/upgrade/data:

    drover-0.1.0.sqlite3.gz     the database file
    drover-0.1.0.pgdump.sql.gz  the database as SQL statements, made by pg_dump
    expected.json               the facts that must hold after an upgrade, for each database

The script runs in a UTS namespace with the host name of HOST and replaces the boot id of the
machine, so the files name no real machine. Ids and times differ from one making to the next, which
is why the databases and expected.json are always written together.
"""

import argparse
import gzip
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
DIRECTORY = Path("/srv/drover")
HOST = "drover-host"
BOOT_ID = "00000000-0000-4000-8000-000000000000"
# Fixed, so that the tests can decrypt what the databases hold; used nowhere else.
SECRETS = {
    "DROVER_CREDENTIAL_KEYS": "ZHJvdmVyLTAuMS4wLXVwZ3JhZGUtdGVzdC1rZXkhISE=",
    "DROVER_SECRET_KEY": "the-secret-key-of-the-upgrade-tests",
    "DROVER_ADMIN_PASSWORD": "the-password-of-the-upgrade-tests",
    "DROVER_BOOTSTRAP_TOKEN": "drover_upgrade-tests-bootstrap-0123456789",
}
ENVIRONMENT = {
    **SECRETS,
    "USER": "operator",
    "LOGNAME": "operator",
    "HOME": str(DIRECTORY),
    "DROVER_LEASE_SECONDS": "6",
    "DROVER_RENEW_SECONDS": "1",
    "DROVER_GRACE_SECONDS": "2",
    "DROVER_CONCURRENCY": "12",
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the databases of the upgrade tests.")
    parser.add_argument("checkout", type=Path, help="a checkout of version 0.1.0")
    checkout = parser.parse_args().checkout.resolve()
    if socket.gethostname() != HOST:
        rename = f'hostname {HOST} && exec "$0" "$@"'
        again = ["sh", "-c", rename, sys.executable, *sys.argv]
        os.execvp("unshare", ["unshare", "--uts", *again])
    if DIRECTORY.exists():
        sys.exit(f"{DIRECTORY} exists: remove it first, the script makes and removes it")
    # The modules `tests` and `agents_app` are those of the checkout.
    sys.path.insert(0, str(checkout))
    DATA.mkdir(exist_ok=True)
    expected = {"secrets": SECRETS, "sqlite": make_sqlite(), "postgres": make_postgres()}
    written = json.dumps(expected, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    (DATA / "expected.json").write_text(written)
    refuse_traces_of_this_machine(checkout)


# --- the two databases ----------------------------------------------------------------------


def make_sqlite() -> dict[str, Any]:
    with stack_in_directory("") as stack:
        facts = fill(stack)
        path = stack.data / "drover.sqlite3"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("VACUUM")
        write_gzip(DATA / "drover-0.1.0.sqlite3.gz", path.read_bytes())
    return facts


def make_postgres() -> dict[str, Any]:
    from tests.parts.ports import free_port
    from tests.parts.postgres_part import PostgresServer

    server = PostgresServer(free_port()).create()
    try:
        url = server.new_database()
        with stack_in_directory(url) as stack:
            facts = fill(stack)
        # Statements, not COPY: any client can execute them, also one that is not psql.
        options = ["--no-owner", "--no-privileges", "--rows-per-insert=100", "--dbname", url]
        argv = [str(server.binaries / "pg_dump"), *options]
        dump = subprocess.run(argv, capture_output=True, check=True).stdout
    finally:
        server.remove()
    # Commands of psql, which no server understands.
    lines = [line for line in dump.split(b"\n") if not line.startswith((b"\\restrict", b"\\unres"))]
    write_gzip(DATA / "drover-0.1.0.pgdump.sql.gz", b"\n".join(lines))
    return facts


@contextmanager
def stack_in_directory(database_url: str) -> Iterator[Any]:
    """A stack of version 0.1.0 in DIRECTORY with the project, removed at the end."""
    from tests.parts.stack_part import PrivateStack

    try:
        with PrivateStack(DIRECTORY, database_url, **ENVIRONMENT) as stack:
            shutil.copytree(HERE / "fleet", stack.project, dirs_exist_ok=True)
            yield stack
    finally:
        shutil.rmtree(DIRECTORY, ignore_errors=True)


def fill(stack: Any) -> dict[str, Any]:
    """Runs the scenario to its end, stops the stack, and returns the facts that must hold."""
    from answers import Client, read_answers
    from facts import read_facts
    from scenario import Scenario

    process = stack.up()
    scenario = Scenario(stack)
    scenario.play()
    process.send_signal(signal.SIGINT)
    process.wait(60)
    stack.processes.clear()
    stack.rows("UPDATE drover_worker SET boot_id = ?", BOOT_ID)
    stack.rows("UPDATE drover_rule SET held_by = ''")
    # The gateway alone: nothing changes while it is asked.
    stack.start("gateway")
    tokens = scenario.kept["tokens"]
    clients = {name: Client(stack.url, tokens[name]) for name in ("operator", "acme")}
    answers = {name: read_answers(client) for name, client in clients.items()}
    stack.stop("gateway")
    return {**read_facts(stack.rows), **scenario.kept, "answers": answers}


def write_gzip(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content, mtime=0))


def refuse_traces_of_this_machine(checkout: Path) -> None:
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    traces = [str(checkout), str(HERE), sys.prefix, boot_id, "/tmp/", "/root"]
    for path in DATA.iterdir():
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        if found := [trace for trace in traces if trace.encode() in content]:
            sys.exit(f"{path} holds {found}: change the scenario so that it does not")


if __name__ == "__main__":
    main()

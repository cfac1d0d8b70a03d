"""The project's settings with everything of a test session in a private directory.

DROVER_TEST_DATABASE=sqlite (default) or postgres says on which database the suite runs.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from tests.parts.ports import free_port

# Short, because Unix sockets live below it.
SESSION = Path(tempfile.mkdtemp(prefix="drover-test-"))
ON_POSTGRES = os.environ.get("DROVER_TEST_DATABASE", "sqlite") == "postgres"
POSTGRES_PORT = free_port()


def _remove(owner: int = os.getpid()) -> None:
    # A forked child of a test must not take the directory away from its parent.
    if os.getpid() == owner:
        shutil.rmtree(SESSION, ignore_errors=True)


atexit.register(_remove)
(SESSION / "project").mkdir()
for _name in [name for name in os.environ if name.startswith("DROVER_")]:
    if not _name.startswith(("DROVER_TEST_", "DROVER_REQUIRE_")):
        del os.environ[_name]
os.environ.pop("REDIS_URL", None)
os.environ |= {
    "DROVER_DATA": str(SESSION / "data"),
    "DROVER_PROJECT": str(SESSION / "project"),
    "DATABASE_URL": f"postgresql://postgres@127.0.0.1:{POSTGRES_PORT}/drover"
    if ON_POSTGRES
    else f"sqlite:///{SESSION}/drover.sqlite3",
}

# Made before the settings read it, as `up` does before it starts processes.
from agents_app.installation import read_or_create_secret  # noqa: E402

read_or_create_secret(SESSION / "data" / "redis.password")

from scheduler_project.settings import *  # noqa: E402, F403
from scheduler_project.settings import DATABASES  # noqa: E402

# A file, because SQLite in memory has other locks and only one connection.
DATABASES["default"]["TEST"] = {"NAME": None if ON_POSTGRES else str(SESSION / "test.sqlite3")}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

"""Names for shell completion: `python agents_app/cli/names.py agents|schedules|tenants`.

Reads the database without Django, whose import takes a second; prints nothing on an error. The
file is run by its path, because the import of its package would load Django.
"""

import os
import sqlite3
import sys
from contextlib import closing, suppress
from urllib.parse import quote

from agents_app.conf import database_settings, read_conf

QUERIES = {
    "agents": """
        SELECT a.name FROM drover_agent a JOIN drover_tenant t ON t.id = a.tenant_id
        WHERE t.name = ? ORDER BY a.name LIMIT ?""",
    "schedules": """
        SELECT a.name || '/' || s.name FROM drover_schedule s
        JOIN drover_agent a ON a.id = s.agent_id JOIN drover_tenant t ON t.id = s.tenant_id
        WHERE t.name = ? ORDER BY a.name, s.name LIMIT ?""",
    "tenants": "SELECT name FROM drover_tenant WHERE ? <> '' ORDER BY name LIMIT ?",
}
MOST = 2000
WAIT_SECONDS = 1


def names(kind: str, tenant: str, database_url: str) -> list[str]:
    query, values = QUERIES[kind], (tenant, MOST)
    if database_url.startswith("sqlite"):
        path = quote(database_settings(database_url)["NAME"])
        # Read-only: completion must not create a database.
        opened = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=WAIT_SECONDS)
        with closing(opened) as lite:
            return [name for (name,) in lite.execute(query, values)]
    import psycopg

    with psycopg.connect(database_url, connect_timeout=2) as postgres:
        rows = postgres.execute(query.replace("?", "%s").encode(), values)
        return [name for (name,) in rows]


def main(kind: str, tenant: str = "default") -> None:
    # An error message would damage the line that is being completed.
    with suppress(Exception):
        found = names(kind, tenant or "default", read_conf(os.environ).database_url)
        # Names with control characters are not completed.
        printable = [name for name in found if name.isprintable()]
        sys.stdout.write("".join(f"{name}\n" for name in printable))


if __name__ == "__main__":
    main(*sys.argv[1:3])

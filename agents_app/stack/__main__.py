"""`up` after its preparations: one small process that starts and watches all others.

Django is loaded only when a stop must know about runs: idle it would cost 40 MB.
"""

import asyncio
import os
import sys
import time

from agents_app.conf import CONF
from agents_app.errors import DroverError
from agents_app.stack.console import Console
from agents_app.stack.role import Role
from agents_app.stack.roles import FLOWER_USER, all_roles, flower_password_file
from agents_app.stack.supervisor import Callbacks, Supervisor

STARTED_AT = "DROVER_UP_STARTED_AT"


def main(lock_fd: int) -> int:
    try:
        roles = all_roles(CONF, os.environ)
    except DroverError as error:
        sys.stderr.write(f"drover: {error}\n")
        return 1
    console = Console(sys.stdout, tuple(role.name for role in roles))
    callbacks = Callbacks(
        on_ready=lambda: _banner(console), running=_count_running, interrupt=_interrupt_running
    )
    # A worker notices the wish within a second, then gives its runs their grace.
    grace = CONF.grace_seconds + 5
    return asyncio.run(_supervise(roles, console, callbacks, lock_fd, grace))


async def _supervise(
    roles: tuple[Role, ...], console: Console, callbacks: Callbacks, lock_fd: int, grace: float
) -> int:
    supervisor = Supervisor(roles, console, callbacks, keep_fds=(lock_fd,), grace_seconds=grace)
    return await supervisor.run()


def _banner(console: Console) -> None:
    password_file = flower_password_file(CONF.data)
    seconds = time.time() - float(os.environ.get(STARTED_AT) or time.time())
    console.say(
        f"Drover is ready ({seconds:.1f} s)\n"
        f"  dashboard  http://127.0.0.1:{CONF.port}/admin/ (user admin)\n"
        f"  Flower     http://127.0.0.1:{CONF.flower_port}/"
        f" (user {FLOWER_USER}, password in {password_file})\n"
        f"  project    {CONF.project}\n"
        "  stop       Ctrl-C lets running agents finish, twice ends them"
    )


def _count_running() -> int:
    _load_django()
    from agents_app.stack.going_on import count_running

    return count_running()


def _interrupt_running() -> None:
    _load_django()
    from agents_app.stack.going_on import interrupt_running

    interrupt_running()


def _load_django() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
    import django

    django.setup()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

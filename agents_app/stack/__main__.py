"""The supervisor process of `manage.py up`, which starts and watches all other processes.

Django is loaded only at a stop, which needs the number of runs: it would cost 40 MB while idle.
"""

import asyncio
import os
import sys

from agents_app.conf import CONF
from agents_app.errors import DroverError
from agents_app.stack.banner import banner
from agents_app.stack.console import Console
from agents_app.stack.roles import all_roles
from agents_app.stack.supervisor import Callbacks, Supervisor


async def supervise(lock_fd: int) -> int:
    roles = all_roles(CONF, os.environ)
    console = Console(sys.stdout, tuple(role.name for role in roles))
    supervisor = Supervisor(
        roles,
        console,
        Callbacks(
            on_ready=lambda: console.say(banner(CONF)),
            running=_count_running,
            interrupt=_interrupt_running,
        ),
        keep_fds=(lock_fd,),
        # A worker notices the request within a second, then waits for the grace period.
        grace_seconds=CONF.grace_seconds + 5,
    )
    return await supervisor.run()


def _count_running() -> int:
    _load_django()
    from agents_app.stack.machine_runs import count_running

    return count_running()


def _interrupt_running() -> None:
    _load_django()
    from agents_app.stack.machine_runs import interrupt_running

    interrupt_running()


def _load_django() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
    import django

    django.setup()


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(supervise(int(sys.argv[1]))))
    except (DroverError, OSError) as error:
        sys.stderr.write(f"drover: {error}\n")
        sys.exit(1)

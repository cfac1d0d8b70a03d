"""The supervisor process of `manage.py up`, which starts and watches all other processes.

Django is loaded only at a stop, which records the state of the scheduler and needs the number of
runs: it would cost 40 MB while idle.
"""

import asyncio
import os
import sys
from types import ModuleType

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
            running=lambda: int(_machine_runs().count_running()),
            interrupt=lambda: _machine_runs().interrupt_running(),
            record_draining=lambda: _machine_runs().record_draining(),
            record_stopped=lambda: _machine_runs().record_stopped(),
        ),
        keep_fds=(lock_fd,),
        # A worker notices the request within a second, then waits for the grace period.
        grace_seconds=CONF.grace_seconds + 5,
    )
    return await supervisor.run()


def _machine_runs() -> ModuleType:
    """The module that needs Django, which is loaded here."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
    import django

    django.setup()
    from agents_app.stack import machine_runs

    return machine_runs


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(supervise(int(sys.argv[1]))))
    except (DroverError, OSError) as error:
        sys.stderr.write(f"drover: {error}\n")
        sys.exit(1)

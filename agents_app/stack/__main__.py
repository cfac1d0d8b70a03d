"""The supervisor process of `manage.py up`, which starts and watches all other processes.

Django is loaded only at a stop, which records the state of the scheduler and needs the number of
runs: it would cost 40 MB while idle.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from agents_app.conf import CONF
from agents_app.errors import DroverError
from agents_app.stack.banner import banner
from agents_app.stack.console import Console, Style
from agents_app.stack.notify import Notifier
from agents_app.stack.roles import all_roles
from agents_app.stack.supervisor import Callbacks, Supervisor

# The output by DROVER_LOG_FORMAT; without it, lines of JSON after the name of their process.
STYLES: Mapping[str, Style] = {"human": "readable", "json": "json"}


async def supervise(lock_fd: int) -> int:
    roles = all_roles(CONF, os.environ)
    style = STYLES.get(os.environ.get("DROVER_LOG_FORMAT", ""), "labelled")
    console = Console(sys.stdout, tuple(role.name for role in roles), style=style)
    notifier = Notifier(os.environ)

    def announce_ready() -> None:
        console.say(banner(CONF))
        notifier.ready(f"ready at {CONF.gateway_url}")

    def announce_start(names: Sequence[str]) -> None:
        notifier.status(f"starting {', '.join(names)}")
        if style == "readable":
            console.say(f"starting {', '.join(names)}")

    supervisor = Supervisor(
        roles,
        console,
        Callbacks(
            on_ready=announce_ready,
            on_starting=announce_start,
            on_stopping=notifier.stopping,
            on_alive=notifier.alive,
            alive_seconds=notifier.watchdog_seconds,
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
    # The supervisor prints messages of its own about the stop.
    logging.getLogger("drover").setLevel(logging.WARNING)
    from agents_app.stack import machine_runs

    return machine_runs


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(supervise(int(sys.argv[1]))))
    except (DroverError, OSError) as error:
        sys.stderr.write(f"drover: {error}\n")
        sys.exit(1)

"""The processes that `drover up` starts and supervises.

Belongs here: starting, watching and stopping processes.
Does not belong here: rules about agents or runs.
"""

from agents_app.stack import service_unit
from agents_app.stack.background import start_in_background
from agents_app.stack.banner import STARTED_AT
from agents_app.stack.environment import ONLY_FOR_UP, role_environment
from agents_app.stack.roles import guard_argv
from agents_app.stack.supervisor import HANDLED_SIGNALS

__all__ = [
    "HANDLED_SIGNALS",
    "ONLY_FOR_UP",
    "STARTED_AT",
    "first_start",
    "guard_argv",
    "preflight",
    "role_environment",
    "service_unit",
    "start_in_background",
]  # `first_start` and `preflight` need Django: they are imported by name

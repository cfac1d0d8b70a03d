"""The runners by the agent's `runtime.type`."""

from agents_app.runners.base import Runner
from agents_app.runners.container import CONTAINERS
from agents_app.runners.host_user import HostUserRunner
from agents_app.runners.process import ProcessRunner

RUNNERS: dict[str, Runner] = {
    "process": ProcessRunner(),
    "host-user": HostUserRunner(),
    "container": CONTAINERS,
}

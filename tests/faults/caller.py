"""A process outside the stack that requests runs as commands and the gateway do.

Run as `python -m tests.faults.caller`: reads lines of JSON, [verb, arguments...],
and answers each with a line of JSON.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import django

django.setup()

from agents_app.conf import CONF  # noqa: E402
from agents_app.events import relay  # noqa: E402
from agents_app.models import Agent, Run, Trigger  # noqa: E402
from agents_app.project.sync import sync_project  # noqa: E402
from agents_app.runs import dispatch  # noqa: E402
from agents_app.runs.dispatch import Request  # noqa: E402
from agents_app.signals import messages  # noqa: E402


def sync() -> list[str]:
    """Read the project directory into rows, as beat does."""
    discovery = sync_project(CONF.project, datetime.now(UTC))
    return [str(error) for error in discovery.errors]


def ask(agent: str, count: int = 1) -> list[int]:
    row = Agent.objects.get(name=agent)
    request = Request(row.tenant_id, row.pk, Trigger.MANUAL, requested_by="a test")
    return [dispatch.enqueue(request, datetime.now(UTC)).pk for _ in range(count)]


def send_message(agent: str, text: str) -> int:
    return messages.send(Agent.objects.get(name=agent), text, "a test", datetime.now(UTC)).pk


def ask_and_die_before_the_hint(agent: str) -> None:
    """Commit the work item and die before its hint is sent."""
    relay.hint = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    ask(agent)


def ask_and_die_after_the_hint(agent: str) -> None:
    """Commit the work item, send its hint to Redis, and die before anything else is done."""

    def publish_and_die(run_id: int, agent_id: int) -> None:
        relay.publish(run_id, agent_id)
        os.kill(os.getpid(), signal.SIGKILL)

    relay.hint = publish_and_die
    ask(agent)


def hint(run_id: int, times: int) -> None:
    agent_id = Run.objects.values_list("agent_id", flat=True).get(pk=run_id)
    for _ in range(times):
        relay.publish(run_id, agent_id)


VERBS: Mapping[str, Callable[..., Any]] = {
    verb.__name__: verb
    for verb in (
        *(sync, ask, send_message, hint),
        *(ask_and_die_before_the_hint, ask_and_die_after_the_hint),
    )
}


if __name__ == "__main__":
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        print(json.dumps(VERBS[verb](*arguments)), flush=True)

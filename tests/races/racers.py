"""The program that racers are forked from, one for each order that it reads.

Hints are not what is raced for: they go nowhere here, as if Redis were away."""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django

if __name__ == "__main__":
    django.setup()

from django.conf import settings
from django.db import connection

from agents_app.events import relay
from tests.races import beats, breaking, callers, field, rulers, spenders, workers

ACTS: dict[str, Callable[..., Any]] = {
    name: act
    for module in (field, beats, workers, callers, spenders, rulers, breaking)
    for name, act in vars(module).items()
    if callable(act) and act.__module__ == module.__name__
}


def _perform(order: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": ACTS[order["act"]](**order["arguments"])}
    except BaseException:
        return {"error": traceback.format_exc()}


def _race(order: dict[str, Any]) -> None:
    # Not connected yet: whoever races here does it on the database of its own test.
    connection.settings_dict["NAME"] = settings.DATABASES["default"]["NAME"] = order["database"]
    answer = Path(order["answer"])
    draft = answer.with_suffix(".draft")
    draft.write_text(json.dumps(_perform(order)))
    draft.replace(answer)


def main() -> None:
    relay.hint = lambda *_: None
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead need no burial
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _race(json.loads(line))
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main()

"""The program that forks one racer for each order that it reads.

Hints are discarded, as if Redis were unreachable."""

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
from tests.races import (
    beat_acts,
    call_acts,
    removed_guards,
    rule_acts,
    setup_acts,
    usage_acts,
    worker_acts,
)

ACTS: dict[str, Callable[..., Any]] = {
    name: act
    for module in (
        setup_acts,
        beat_acts,
        worker_acts,
        call_acts,
        usage_acts,
        rule_acts,
        removed_guards,
    )
    for name, act in vars(module).items()
    if callable(act) and act.__module__ == module.__name__
}


def _perform(order: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"result": ACTS[order["act"]](**order["arguments"])}
    except BaseException:
        return {"error": traceback.format_exc()}


def _race(order: dict[str, Any]) -> None:
    # The process is not connected yet, so it can use the database of its test.
    connection.settings_dict["NAME"] = settings.DATABASES["default"]["NAME"] = order["database"]
    answer = Path(order["answer"])
    draft = answer.with_suffix(".draft")
    draft.write_text(json.dumps(_perform(order)))
    draft.replace(answer)


def main() -> None:
    relay.hint = lambda *_: None
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that ended racers leave no zombies
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _race(json.loads(line))
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main()

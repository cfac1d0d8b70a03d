"""`python -m tests.benchmarks.inside MODULE:FUNCTION '{"argument": 1}'`; the answer is JSON."""

import json
import os
import sys
from importlib import import_module


def main(target: str, arguments: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
    import django

    django.setup()
    module, _, function = target.partition(":")
    answer = getattr(import_module(f"tests.benchmarks.inside.{module}"), function)(
        **json.loads(arguments)
    )
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Run as a module by a guard, with ids of containers: they end with the worker it has killed."""

import sys

from agents_app.runners.docker_engine import ENGINE, EngineAway


def main(containers: list[str]) -> int:
    for container in containers:
        try:
            ENGINE.remove(container)
        except EngineAway as error:
            sys.stderr.write(f"drover guard: {container} may live on: {error}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

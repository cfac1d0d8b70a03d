"""Removes containers; run as a module by the guard, for the worker it has killed."""

import sys

from agents_app.runners.containers.engine import DOCKER, EngineUnavailable


def main(containers: list[str]) -> int:
    for container in containers:
        try:
            DOCKER.remove(container)
        except EngineUnavailable as error:
            sys.stderr.write(f"drover guard: {container} may still run: {error}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

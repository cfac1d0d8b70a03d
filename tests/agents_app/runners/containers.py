"""Runs in real containers, for the tests of the runner."""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from docker import APIClient

from agents_app.runners.base import Mount, Runtime
from agents_app.runners.containers.engine import DockerClient
from agents_app.runners.containers.runner import ContainerRunner
from tests.agents_app.runners.programs import Program
from tests.parts.docker_part import IMAGE, DockerEngine
from tests.parts.waiting import wait_for

# One of each, as a worker has it: each keeps connections.
_runner = lru_cache(lambda url: ContainerRunner(DockerClient(url)))
_client = lru_cache(lambda url: APIClient(url, version="1.41"))


class Contained(Program):
    """One run of a shell script of busybox in a container."""

    def __init__(
        self,
        where: Path,
        engine: DockerEngine,
        *argv: str,
        timeout: float = 30.0,
        grace: float = 10.0,
        mounts: tuple[Mount, ...] = (),
        **runtime: Any,
    ) -> None:
        runner = _runner(engine.url)
        super().__init__(where, *argv, runner=runner, timeout=timeout, grace=grace)
        self.containers = runner
        self.client = _client(engine.url)
        self.spec = replace(
            self.spec,
            trace_id=uuid4().hex,
            runtime=Runtime("container", **{"image": IMAGE, "memory": "64m", **runtime}),
            mounts=(Mount(self.cwd, writable=True), *mounts),
        )

    def container(self) -> str:
        """Its id, once its prompt is with it."""
        return wait_for(lambda: self.control.container)

    def left(self) -> list[Any]:
        """Containers of this run that are still there."""
        labels = [f"drover.run={self.run_id}", f"drover.trace={self.spec.trace_id}"]
        return list(self.client.containers(all=True, filters={"label": labels}))

    def remove_kept(self) -> None:
        """What a worker does after it has recorded the end of the run."""
        if self.control.container:
            self.containers.remove(self.control.container)

    def adopted(self, left_seconds: float = 30.0, engine: DockerClient | None = None) -> "Program":
        """Another runner goes on with the container of this one, from another thread."""
        other = Program(self.cwd, "nothing")
        other.runner = runner = ContainerRunner(engine) if engine else self.containers

        def go_on() -> None:
            other.outcome = runner.adopt(
                self.container(), self.spec, left_seconds, other.control, other.sink
            )
            other.ended = True

        other.thread = threading.Thread(target=go_on, daemon=True)
        other.thread.start()
        return other


NewContained = Callable[..., Contained]

"""Runs a program in a Docker container; one thread supervises one container."""

import contextlib
import signal
import time

import structlog

from agents_app.runners.base import Outcome, OutputSink, RunControl, RunSpec, spawn_error
from agents_app.runners.containers.engine import (
    DOCKER,
    DockerClient,
    EngineNotFound,
    EngineRefused,
    EngineUnavailable,
)
from agents_app.runners.containers.options import change_owners, container_name, limits, options
from agents_app.runners.containers.supervise import ContainerSupervisor

log = structlog.get_logger("drover.container")
WARN_EVERY_SECONDS = 10.0
KILLED_BY_SIGNAL = frozenset({128 + signal.SIGTERM, 128 + signal.SIGKILL})
REMOVE_AGAIN_SECONDS = 1.0


class ContainerRunner:
    """Creates, attaches, then starts: in this order no output is lost."""

    def __init__(self, engine: DockerClient = DOCKER) -> None:
        self._engine = engine
        self._warned_at = -WARN_EVERY_SECONDS

    def run(self, spec: RunSpec, control: RunControl, sink: OutputSink) -> Outcome:
        if control.request is not None:
            return Outcome("stopped", None, control.request.reason)
        try:
            container = self._create(spec)
        except EngineUnavailable as error:
            return self._unavailable(error)
        except EngineNotFound as error:
            return _image_missing(spec, error)
        except (EngineRefused, ValueError) as error:
            return Outcome("spawn_failed", None, str(error))
        supervisor = ContainerSupervisor(self._engine, container, spec, control, sink)
        try:
            supervisor.attach()
            self._engine.start(container)
            supervisor.supervise(spec.timeout_seconds)
            return supervisor.outcome()
        except EngineUnavailable as error:
            self._remove_for_certain(container)
            return self._unavailable(error)
        except EngineRefused as error:
            return Outcome("spawn_failed", None, _not_started(spec, error))
        except OSError as error:
            return Outcome("spawn_failed", None, spawn_error(spec, error))
        finally:
            supervisor.close()
            self._remove_unless_kept(container, supervisor, control)

    def adopt(
        self,
        container: str,
        spec: RunSpec,
        left_seconds: float,
        control: RunControl,
        sink: OutputSink,
    ) -> Outcome:
        """Supervise a container whose worker is dead; the sink gets the output from its start."""
        supervisor = ContainerSupervisor(self._engine, container, spec, control, sink)
        if self._ended_by_itself(container):
            left_seconds = spec.timeout_seconds  # the program was in time: only its log is read
        try:
            supervisor.supervise(left_seconds)
            return supervisor.outcome()
        finally:
            supervisor.close()
            self._remove_unless_kept(container, supervisor, control)

    def remove(self, container: str) -> None:
        """Remove a container that `run` or `adopt` kept, after the end of its run was recorded.

        If the engine does not answer, the sweep removes the dead container later."""
        with contextlib.suppress(EngineUnavailable):
            self._engine.remove(container)

    def _create(self, spec: RunSpec) -> str:
        if not spec.argv:
            raise ValueError("the command is empty")
        image = spec.runtime.image
        if not image:
            raise ValueError(
                "no image: name one in the agent's `runtime.image` or the project's `image`"
            )
        if spec.runtime.pull == "missing":
            self._pull_missing(image)
        image_env = self._engine.image_environment(image)
        change_owners(spec.mounts)
        return self._engine.create(container_name(spec), options(spec, image_env), limits(spec))

    def _pull_missing(self, image: str) -> None:
        try:
            self._engine.image_environment(image)
        except EngineNotFound:
            try:
                self._engine.pull(image)
            except EngineRefused as error:
                raise EngineNotFound(str(error)) from None

    def _ended_by_itself(self, container: str) -> bool:
        with contextlib.suppress(EngineUnavailable):
            state = self._engine.state(container)
            if state is not None and not state.running:
                return state.exit_code not in KILLED_BY_SIGNAL
        return False

    def _remove_unless_kept(
        self, container: str, supervisor: ContainerSupervisor, control: RunControl
    ) -> None:
        """Remove the container, unless it has ended and another worker may adopt it.

        Until the end of the run is recorded, exit code and output are nowhere but in the
        container: a worker that adopts it now must find them. The caller removes it afterwards."""
        if not (supervisor.result_is_known and control.container == container):
            self.remove(container)

    def _remove_for_certain(self, container: str) -> None:
        """The container may have started although the answer was lost, so it must be removed
        before the run is tried again."""
        while True:
            try:
                return self._engine.remove(container)
            except EngineUnavailable:
                time.sleep(REMOVE_AGAIN_SECONDS)

    def _unavailable(self, error: EngineUnavailable) -> Outcome:
        if time.monotonic() - self._warned_at >= WARN_EVERY_SECONDS:
            self._warned_at = time.monotonic()
            log.warning("docker.unavailable", error=str(error))
        problem = f"Docker is not reachable at {self._engine.address}"
        return Outcome("unavailable", None, f"docker_unavailable: {problem}")


def _image_missing(spec: RunSpec, error: EngineNotFound) -> Outcome:
    image = spec.runtime.image
    advice = f"`docker pull {image}` it, or set `runtime.pull: missing`"
    if spec.runtime.pull == "missing":
        advice = f"it could not be pulled: {error}"
    return Outcome("exited", None, f"image_missing: {image!r} is not on this machine; {advice}")


def _not_started(spec: RunSpec, error: EngineRefused) -> str:
    text = str(error)
    if "executable file not found" in text or "no such file or directory" in text:
        return f"ENOENT: {spec.argv[0]!r} was not found in the image {spec.runtime.image!r}"
    if "permission denied" in text:
        return f"EACCES: {spec.argv[0]!r} may not be executed in {spec.runtime.image!r}"
    return text


CONTAINER_RUNNER = ContainerRunner()

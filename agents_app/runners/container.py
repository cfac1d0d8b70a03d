"""Runs a program in a Docker container; one thread supervises one container."""

import contextlib
import time

import structlog

from agents_app.runners.base import Outcome, OutputSink, RunControl, RunSpec, spawn_error
from agents_app.runners.container_options import container_name, give_all, limits, options
from agents_app.runners.container_watch import Watch
from agents_app.runners.docker_engine import ENGINE, Engine, EngineAway, EngineRefused, NotThere

log = structlog.get_logger("drover.container")
WARN_EVERY_SECONDS = 10.0
AGAIN_SECONDS = 1.0


class ContainerRunner:
    """Create, attach, start, in this order, so that not even the first line is lost."""

    def __init__(self, engine: Engine = ENGINE) -> None:
        self._engine = engine
        self._warned_at = -WARN_EVERY_SECONDS

    def run(self, spec: RunSpec, control: RunControl, sink: OutputSink) -> Outcome:
        if control.request is not None:
            return Outcome("stopped", None, control.request.reason)
        try:
            container = self._create(spec)
        except EngineAway as error:
            return self._unavailable(error)
        except NotThere as error:
            return _image_missing(spec, error)
        except (EngineRefused, ValueError) as error:
            return Outcome("spawn_failed", None, str(error))
        watch = Watch(self._engine, container, spec, control, sink)
        try:
            watch.attach()
            self._engine.start(container)
            watch.until_it_ends(spec.timeout_seconds)
            return watch.outcome()
        except EngineAway as error:
            self._never_begun(container)
            return self._unavailable(error)
        except EngineRefused as error:
            return Outcome("spawn_failed", None, _not_started(spec, error))
        except OSError as error:
            return Outcome("spawn_failed", None, spawn_error(spec, error))
        finally:
            watch.close()
            self._remove(container)

    def adopt(
        self,
        container: str,
        spec: RunSpec,
        left_seconds: float,
        control: RunControl,
        sink: OutputSink,
    ) -> Outcome:
        """Goes on with one whose worker is gone; the sink gets all its output, from the start."""
        watch = Watch(self._engine, container, spec, control, sink)
        try:
            watch.until_it_ends(left_seconds)
            return watch.outcome()
        finally:
            watch.close()
            self._remove(container)

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
        give_all(spec.mounts)
        return self._engine.create(container_name(spec), options(spec, image_env), limits(spec))

    def _pull_missing(self, image: str) -> None:
        try:
            self._engine.image_environment(image)
        except NotThere:
            try:
                self._engine.pull(image)
            except EngineRefused as error:
                raise NotThere(str(error)) from None

    def _remove(self, container: str) -> None:
        """It is dead by now; what cannot be removed at this moment is left to the sweep."""
        with contextlib.suppress(EngineAway):
            self._engine.remove(container)

    def _never_begun(self, container: str) -> None:
        """It may have started without our hearing of it: it is gone before it is tried again."""
        while True:
            try:
                return self._engine.remove(container)
            except EngineAway:
                time.sleep(AGAIN_SECONDS)

    def _unavailable(self, error: EngineAway) -> Outcome:
        if time.monotonic() - self._warned_at >= WARN_EVERY_SECONDS:
            self._warned_at = time.monotonic()
            log.warning("docker.unavailable", error=str(error))
        return Outcome("unavailable", None, f"docker_unavailable: {error}")


def _image_missing(spec: RunSpec, error: NotThere) -> Outcome:
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


CONTAINERS = ContainerRunner()

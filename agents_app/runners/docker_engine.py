"""The Docker engine of this machine through its SDK: every call that Drover makes to it."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # 20 MB and 0.2 s: only who runs containers pays for the SDK
    from docker import APIClient

ANSWER_SECONDS = 60  # an engine under load takes seconds to start a container
PUMP_BYTES = 65536
DEFAULT_ADDRESS = "unix:///var/run/docker.sock"


class EngineAway(Exception):
    """The engine does not answer, which says nothing about the containers."""


class EngineRefused(Exception):
    """The engine has answered no."""


class NotThere(EngineRefused):
    """No such container, image or network."""


@dataclass(frozen=True, slots=True)
class ContainerState:
    running: bool
    exit_code: int
    oom_killed: bool


@dataclass(frozen=True, slots=True)
class Found:
    """A container, by the labels that its runner has put on it."""

    container: str
    labels: Mapping[str, str]


class Engine:
    """Asked by any thread. Without a URL it is where DOCKER_HOST says, else at its usual socket."""

    def __init__(self, url: str = "") -> None:
        self._url = url
        self._lock = threading.Lock()
        self._client: APIClient | None = None

    @property
    def address(self) -> str:
        return self._url or os.environ.get("DOCKER_HOST") or DEFAULT_ADDRESS

    def ping(self) -> None:
        with _asking():
            self._api().ping()

    # --- images -----------------------------------------------------------------------------

    def image_environment(self, image: str) -> dict[str, str]:
        """What the image sets by itself; NotThere if the image is not on this machine."""
        with _asking():
            found = self._api().inspect_image(image)  # type: ignore[no-untyped-call]
        return _environment_in(found)

    def pull(self, image: str) -> None:
        name, _, tag = image.rpartition(":")
        # A colon before a slash is a registry's port.
        name, tag = (name, tag) if name and "/" not in tag else (image, "latest")
        with _asking():
            self._api().pull(name, None if "@" in image else tag)

    # --- one container ----------------------------------------------------------------------

    def create(self, name: str, options: Mapping[str, Any], limits: Mapping[str, Any]) -> str:
        with _asking():
            api = self._api()
            host_config = api.create_host_config(**limits)
            made = api.create_container(
                name=name,
                host_config=host_config,
                stdin_open=True,
                # This user's own settings are not for agents.
                use_config_proxy=False,
                **options,
            )
            return str(made["Id"])

    def attach(self, container: str) -> socket.socket:
        """Both ways, from now on: before the start, or the first line is lost."""
        wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        with _asking():
            theirs = self._api().attach_socket(container, wanted)
            # A descriptor of our own: the SDK's belongs to an answer that it keeps to itself.
            ours = socket.socket(fileno=os.dup(theirs.fileno()))
            theirs._response.close()
        ours.setblocking(False)
        return ours

    def start(self, container: str) -> None:
        with _asking():
            self._api().start(container)

    def environment(self, container: str) -> dict[str, str]:
        """What it was given when it was made."""
        with _asking():
            return _environment_in(self._api().inspect_container(container))

    def state(self, container: str) -> ContainerState | None:
        """None: there is no such container (any more)."""
        try:
            with _asking():
                state = self._api().inspect_container(container)["State"]
        except NotThere:
            return None
        # "created" is not running either, and has no exit code that means anything.
        return ContainerState(state["Running"], state["ExitCode"], state["OOMKilled"])

    def refused_processes(self, container: str) -> bool:
        """It wanted more of them than it may have; as far as this machine's kernel tells us."""
        with contextlib.suppress(EngineRefused, OSError), _asking():
            pid = self._api().inspect_container(container)["State"]["Pid"]
            return not refusals(pid).endswith("max 0")
        return False

    def signal(self, container: str, name: str) -> None:
        with contextlib.suppress(EngineRefused), _asking():  # it has ended already
            self._api().kill(container, name)

    def remove(self, container: str) -> None:
        """Dead and gone; that it was gone already is fine."""
        with contextlib.suppress(EngineRefused), _asking():
            self._api().remove_container(container, force=True, v=True)

    def follow(self, container: str) -> int:
        """A descriptor with all it has printed from its start, and goes on to print."""
        with _asking():
            api = self._api()
            url = f"{api.base_url}/v{api.api_version}/containers/{container}/logs"
            wanted = {"stdout": 1, "stderr": 1, "follow": 1}
            answer = api.get(url, params=wanted, stream=True, timeout=(ANSWER_SECONDS, None))
            if answer.status_code != HTTPStatus.OK:
                raise EngineRefused(answer.text)
        ours, theirs = os.pipe()
        # The answer comes in HTTP's chunks, which no poll can wait for.
        threading.Thread(target=_pump, args=(answer, theirs), name="logs", daemon=True).start()
        return ours

    # --- all of them ------------------------------------------------------------------------

    def find(self, *labels: str) -> list[Found]:
        """Whatever has all these labels, running or not."""
        with _asking():
            listed = self._api().containers(all=True, filters={"label": list(labels)})
        return [Found(each["Id"], each["Labels"]) for each in listed]

    def _api(self) -> "APIClient":
        with self._lock:
            if self._client is None:
                self._client = _connect(self._url)
            return self._client


def _connect(url: str) -> "APIClient":
    from docker import APIClient
    from docker.utils import kwargs_from_env

    where = {"base_url": url} if url else kwargs_from_env()
    return APIClient(version="auto", timeout=ANSWER_SECONDS, **where)


@contextlib.contextmanager
def _asking() -> Iterator[None]:
    """The SDK's errors, sorted by what can be concluded from them."""
    from docker.errors import APIError, DockerException, NotFound
    from requests.exceptions import RequestException

    try:
        yield
    except NotFound as error:
        raise NotThere(error.explanation or str(error)) from None
    except APIError as error:
        raise EngineRefused(error.explanation or str(error)) from None
    except (DockerException, RequestException, OSError) as error:
        raise EngineAway(_cause(error)) from None


def _cause(error: Exception) -> str:
    """Of errors in errors the innermost says what it was."""
    inner: BaseException = error
    while isinstance(inner.__cause__ or inner.__context__, Exception):
        inner = inner.__cause__ or inner.__context__ or inner
    return str(inner) or type(inner).__name__


def refusals(pid: int) -> str:
    """The kernel's count of how often the group of that process was refused another one."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds in ("", "pids"):
            return Path(f"/sys/fs/cgroup/{kinds}{path}/pids.events").read_text().strip()
    raise FileNotFoundError("no group that counts processes")


def _pump(answer: Any, pipe: int) -> None:
    with contextlib.suppress(Exception), answer, open(pipe, "wb", buffering=0) as file:
        for data in answer.raw.stream(PUMP_BYTES, decode_content=False):
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]


ENGINE = Engine()


def _environment_in(found: Mapping[str, Any]) -> dict[str, str]:
    config = found.get("Config") or {}
    pairs = (entry.partition("=") for entry in config.get("Env") or ())
    return {name: value for name, _, value in pairs}

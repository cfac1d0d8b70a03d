"""Every call that Drover makes to the Docker engine, through its SDK."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # 20 MB and 0.2 s: loaded only where containers are used
    from docker import APIClient

ANSWER_SECONDS = 60  # an engine under load takes seconds to start a container
COPY_BYTES = 65536
DEFAULT_ADDRESS = "unix:///var/run/docker.sock"


class EngineUnavailable(Exception):
    """The engine does not answer; the state of its containers is unknown."""


class EngineRefused(Exception):
    """The engine refused the request."""


class EngineNotFound(EngineRefused):
    """There is no such container, image or network."""


@dataclass(frozen=True, slots=True)
class ContainerState:
    running: bool
    exit_code: int
    oom_killed: bool


@dataclass(frozen=True, slots=True)
class FoundContainer:
    """A container and its labels."""

    container: str
    labels: Mapping[str, str]


class DockerClient:
    """Thread-safe. Without a URL it connects to DOCKER_HOST, else to the default socket."""

    def __init__(self, url: str = "") -> None:
        self._url = url
        self._lock = threading.Lock()
        self._client: APIClient | None = None

    @property
    def address(self) -> str:
        return self._url or os.environ.get("DOCKER_HOST") or DEFAULT_ADDRESS

    def ping(self) -> None:
        with _translated_errors():
            self._api().ping()

    # --- images -----------------------------------------------------------------------------

    def image_environment(self, image: str) -> dict[str, str]:
        """The environment of the image; EngineNotFound if the image is not on this machine."""
        with _translated_errors():
            found = self._api().inspect_image(image)  # type: ignore[no-untyped-call]
        return _environment_of(found)

    def pull(self, image: str) -> None:
        name, _, tag = image.rpartition(":")
        # A colon before a slash belongs to the port of a registry.
        name, tag = (name, tag) if name and "/" not in tag else (image, "latest")
        with _translated_errors():
            self._api().pull(name, None if "@" in image else tag)

    # --- one container ----------------------------------------------------------------------

    def create(self, name: str, options: Mapping[str, Any], limits: Mapping[str, Any]) -> str:
        with _translated_errors():
            api = self._api()
            host_config = api.create_host_config(**limits)
            made = api.create_container(
                name=name,
                host_config=host_config,
                stdin_open=True,
                # The proxy settings of the worker's user are not for agents.
                use_config_proxy=False,
                **options,
            )
            return str(made["Id"])

    def attach(self, container: str) -> socket.socket:
        """A socket to stdin and from the output; attach before the start, or output is lost."""
        params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        with _translated_errors():
            attached = self._api().attach_socket(container, params)
            # A duplicate: the descriptor of the SDK belongs to a response that it closes.
            duplicate = socket.socket(fileno=os.dup(attached.fileno()))
            attached._response.close()
        duplicate.setblocking(False)
        return duplicate

    def start(self, container: str) -> None:
        with _translated_errors():
            self._api().start(container)

    def environment(self, container: str) -> dict[str, str]:
        """The environment that the container was created with."""
        with _translated_errors():
            return _environment_of(self._api().inspect_container(container))

    def state(self, container: str) -> ContainerState | None:
        """None if there is no such container."""
        try:
            with _translated_errors():
                state = self._api().inspect_container(container)["State"]
        except EngineNotFound:
            return None
        # A container in state "created" is not running either; its exit code means nothing.
        return ContainerState(state["Running"], state["ExitCode"], state["OOMKilled"])

    def refused_processes(self, container: str) -> bool:
        """Whether the kernel refused a process because of the limit; False if that is unknown."""
        with contextlib.suppress(EngineRefused, OSError), _translated_errors():
            pid = self._api().inspect_container(container)["State"]["Pid"]
            return not pids_events(pid).endswith("max 0")
        return False

    def signal(self, container: str, name: str) -> None:
        with (
            contextlib.suppress(EngineRefused),
            _translated_errors(),
        ):  # the container has ended already
            self._api().kill(container, name)

    def remove(self, container: str) -> None:
        """Kill and remove the container; no error if there is none."""
        with contextlib.suppress(EngineRefused), _translated_errors():
            self._api().remove_container(container, force=True, v=True)

    def follow(self, container: str) -> int:
        """A descriptor with the output from the start of the container, and what follows."""
        with _translated_errors():
            api = self._api()
            url = f"{api.base_url}/v{api.api_version}/containers/{container}/logs"
            params = {"stdout": 1, "stderr": 1, "follow": 1}
            answer = api.get(url, params=params, stream=True, timeout=(ANSWER_SECONDS, None))
            if answer.status_code != HTTPStatus.OK:
                raise EngineRefused(answer.text)
        read_end, write_end = os.pipe()
        # A thread copies it: poll cannot wait for chunks of an HTTP response.
        threading.Thread(target=_copy, args=(answer, write_end), name="logs", daemon=True).start()
        return read_end

    # --- all of them ------------------------------------------------------------------------

    def find(self, *labels: str) -> list[FoundContainer]:
        """The containers that have all these labels, running or not."""
        with _translated_errors():
            listed = self._api().containers(all=True, filters={"label": list(labels)})
        return [FoundContainer(each["Id"], each["Labels"]) for each in listed]

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
def _translated_errors() -> Iterator[None]:
    """Raises EngineNotFound, EngineRefused or EngineUnavailable for the errors of the SDK."""
    from docker.errors import APIError, DockerException, NotFound
    from requests.exceptions import RequestException

    try:
        yield
    except NotFound as error:
        raise EngineNotFound(error.explanation or str(error)) from None
    except APIError as error:
        raise EngineRefused(error.explanation or str(error)) from None
    except (DockerException, RequestException, OSError) as error:
        raise EngineUnavailable(_cause(error)) from None


def _cause(error: Exception) -> str:
    """The message of the innermost error."""
    inner: BaseException = error
    while isinstance(inner.__cause__ or inner.__context__, Exception):
        inner = inner.__cause__ or inner.__context__ or inner
    return str(inner) or type(inner).__name__


def pids_events(pid: int) -> str:
    """The kernel's count of refused processes in the control group of the process."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds in ("", "pids"):
            return Path(f"/sys/fs/cgroup/{kinds}{path}/pids.events").read_text().strip()
    raise FileNotFoundError("no control group with a limit of processes")


def _copy(answer: Any, pipe: int) -> None:
    with contextlib.suppress(Exception), answer, open(pipe, "wb", buffering=0) as file:
        for data in answer.raw.stream(COPY_BYTES, decode_content=False):
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]


DOCKER = DockerClient()


def _environment_of(found: Mapping[str, Any]) -> dict[str, str]:
    config = found.get("Config") or {}
    pairs = (entry.partition("=") for entry in config.get("Env") or ())
    return {name: value for name, _, value in pairs}

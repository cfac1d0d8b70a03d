"""The processes of a peer, started and stopped like those of a private Drover."""

import contextlib
import subprocess
import sys
from pathlib import Path

import redis

from agents_app.conf import ROOT
from agents_app.installation.redis_server import client_url, redis_url
from agents_app.stack.ready import READY_FILE, http_answers
from agents_app.stack.role import Role
from tests.parts.stack_part import PrivateStack

_APP = "tests.benchmarks.peer.app"
_SETTINGS = "tests.benchmarks.peer.settings"
_ASGI = "django.core.asgi:get_asgi_application"
_BEAT = ("-S", "django_celery_beat.schedulers:DatabaseScheduler", "--pidfile=")


class PeerStack(PrivateStack):
    """A bare worker, django-celery-beat's beat, Django under uvicorn, Flower."""

    def __enter__(self) -> "PeerStack":
        return self

    @property
    def report(self) -> Path:
        return self.data / "report"

    def reported(self) -> str:
        """The values that its tasks have written so far."""
        return self.report.read_text() if self.report.exists() else ""

    def send_runs(self, count: int) -> None:
        argv = [sys.executable, "-m", _APP, str(count)]
        subprocess.run(argv, cwd=ROOT, env=self._plain_env(), check=True)

    def waiting(self) -> int:
        """The number of messages in Redis that no worker has taken."""
        with contextlib.closing(redis.Redis.from_url(client_url(redis_url(self.conf)))) as client:
            return int(client.llen(f"{self.env['DROVER_REDIS_PREFIX']}peer"))

    def _plain_env(self) -> dict[str, str]:
        """Start a worker without Django, which a plain task does not need."""
        plain = {key: self.env[key] for key in self.env if key != "DJANGO_SETTINGS_MODULE"}
        return plain | {"PEER_REPORT": str(self.report)}

    def _role(self, name: str) -> Role:
        if name == "redis":
            return super()._role(name)
        plain = self._plain_env()
        ready_file = self.data / f"{name}.ready"
        with_file = plain | {READY_FILE: str(ready_file)}
        with_django = {"DJANGO_SETTINGS_MODULE": _SETTINGS}
        if name == "worker":
            argv = (*_celery("worker"), *_worker_options(self.env["DROVER_CONCURRENCY"]))
            return Role(name=name, argv=argv, env=with_file, ready_file=ready_file)
        if name == "beat":
            argv = (*_celery("beat"), *_BEAT, "-l", "warning")
            return Role(name=name, argv=argv, env=with_file | with_django, ready_file=ready_file)
        if name == "flower":
            port = self.conf.flower_port
            argv = (*_celery("flower"), "--logging=error", "--address=127.0.0.1", f"--port={port}")
            return Role(name=name, argv=argv, env=plain, ready=http_answers(port, "/"))
        assert name == "gateway"
        port = self.conf.port
        argv = (
            sys.executable,
            "-m",
            "uvicorn",
            "--factory",
            "django.core.asgi:get_asgi_application",
        )
        argv += ("--port", str(port), "--no-access-log", "--log-level", "warning")
        ready = http_answers(port, "/healthz")
        return Role(name=name, argv=argv, env=plain | with_django, directory=ROOT, ready=ready)


def _celery(command: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "celery", "-q", "-A", _APP, command)


def _worker_options(concurrency: str) -> tuple[str, ...]:
    """As in Drover, but without events and log lines per task."""
    quiet = ("--without-gossip", "--without-mingle", "-l", "warning")
    return ("-P", "threads", "-c", concurrency, *quiet)

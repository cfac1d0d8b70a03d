"""The processes of an installation: command line, environment, ready check and stop order."""

import sys
from pathlib import Path
from signal import SIGKILL, SIGQUIT, SIGTERM

from agents_app.conf import ROOT, Conf
from agents_app.installation import (
    find_server,
    read_or_create_secret,
    redis_password,
    redis_socket_path,
    server_argv,
)
from agents_app.runners import GUARD
from agents_app.stack.environment import Environment, role_environment
from agents_app.stack.ready import READY_FILE, http_answers, redis_answers
from agents_app.stack.role import Role

# Beat and the workers first, so that no run starts; the gateway after them, because running runs
# report to it; Redis last, because all processes use it.
STOP_WORK, STOP_GATEWAY, STOP_REDIS = range(3)
START_REDIS, START_REST = range(2)

FLOWER_USER = "admin"
_PRIVATE_UMASK = 0o077

_FLOWER = (sys.executable, "-m", "celery", "-q", "-A", "agents_app.stack.monitor", "flower")


def all_roles(conf: Conf, env: Environment) -> tuple[Role, ...]:
    """All processes of `up`; Redis only without REDIS_URL, Flower unless it is disabled."""
    redis = () if conf.redis_url else (redis_role(conf, env),)
    workers = (worker_role(conf, env, number) for number in range(1, conf.workers + 1))
    flower = (flower_role(conf, env),) if conf.flower else ()
    return (*redis, *workers, beat_role(conf, env), gateway_role(conf, env), *flower)


def redis_role(conf: Conf, env: Environment) -> Role:
    return Role(
        name="redis",
        argv=server_argv(find_server(), conf.data, conf.redis_prefix),
        env=role_environment(conf, env, "redis"),
        umask=_PRIVATE_UMASK,
        ready=redis_answers(redis_socket_path(conf.data), redis_password(conf.data)),
        quiet_start=True,
        start_stage=START_REDIS,
        stop_stage=STOP_REDIS,
        death_signal=SIGTERM,
    )


def guard_argv(conf: Conf) -> tuple[str, ...]:
    """The start of the command line of a worker: the guard, which kills a worker that is silent.

    Such a worker has not renewed its lease: runs end before the lease."""
    silence = f"{conf.lease_seconds * 5 / 6:g}"
    return sys.executable, "-IS", GUARD, "--silence", silence, "--"


def worker_role(conf: Conf, env: Environment, number: int) -> Role:
    name = f"worker-{number}"
    ready_file = conf.data / f"{name}.ready"
    return Role(
        name=name,
        argv=(*guard_argv(conf), *_serve("worker", name, str(conf.concurrency))),
        env=_child_env(conf, env, name) | {READY_FILE: str(ready_file)},
        directory=ROOT,
        ready_file=ready_file,
        start_stage=START_REST,
        stop_stage=STOP_WORK,
        stop_timeout_seconds=None,
        # On SIGQUIT the guard kills all its descendants without a grace period.
        kill_signal=SIGQUIT,
        death_signal=SIGQUIT,
    )


def beat_role(conf: Conf, env: Environment) -> Role:
    ready_file = conf.data / "beat.ready"
    return Role(
        name="beat",
        argv=_serve("beat"),
        env=_child_env(conf, env, "beat") | {READY_FILE: str(ready_file)},
        directory=ROOT,
        ready_file=ready_file,
        start_stage=START_REST,
        stop_stage=STOP_WORK,
        # Beat may be killed at any point: conditional updates of rows decide every race.
        death_signal=SIGKILL,
    )


def gateway_role(conf: Conf, env: Environment) -> Role:
    return Role(
        name="gateway",
        argv=(sys.executable, "-m", "gateway_app.serve", conf.host, str(conf.port)),
        env=_child_env(conf, env, "gateway"),
        directory=ROOT,
        ready=http_answers(conf.port, "/healthz"),
        start_stage=START_REST,
        stop_stage=STOP_GATEWAY,
        # The gateway finishes running requests.
        death_signal=SIGTERM,
    )


def flower_role(conf: Conf, env: Environment) -> Role:
    password = read_or_create_secret(flower_password_file(conf.data))
    own = {
        "FLOWER_ADDRESS": "127.0.0.1",
        "FLOWER_PORT": str(conf.flower_port),
        "FLOWER_BASIC_AUTH": f"{FLOWER_USER}:{password}",
        "FLOWER_MAX_TASKS": "1000",
    }
    return Role(
        name="flower",
        argv=(*_FLOWER, "--logging=error"),
        env=_child_env(conf, env, "flower") | own,
        directory=ROOT,
        ready=http_answers(conf.flower_port, "/", status=401),
        start_stage=START_REST,
        stop_stage=STOP_GATEWAY,
        # Flower has no state that could be lost.
        stop_timeout_seconds=3,
        death_signal=SIGKILL,
    )


def flower_password_file(data: Path) -> Path:
    return data / "flower.password"


def _serve(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "agents_app.stack.serve", *arguments)


def _child_env(conf: Conf, env: Environment, name: str) -> dict[str, str]:
    return role_environment(conf, env, name) | {
        "DROVER_ROLE": name,
        # The supervisor renders the lines.
        "DROVER_LOG_FORMAT": "json",
        # `up` has run the system checks; in each process they would load every page.
        "CELERY_SKIP_CHECKS": "true",
        # Two arenas instead of eight per core, so that threads share freed memory.
        "MALLOC_ARENA_MAX": env.get("MALLOC_ARENA_MAX", "2"),
        "PYTHONUNBUFFERED": "1",
    }

"""Programs in Docker containers.

Belongs here: the engine, the options of a container, its supervision and its removal.
Does not belong here: which run belongs to which worker (worker.adoption).
"""

from agents_app.runners.containers.engine import (
    DOCKER,
    EngineNotFound,
    EngineRefused,
    EngineUnavailable,
    FoundContainer,
)
from agents_app.runners.containers.options import (
    RUN_LABEL,
    TRACE_LABEL,
    installation_label,
    run_labels,
)
from agents_app.runners.containers.runner import CONTAINER_RUNNER

__all__ = [
    "CONTAINER_RUNNER",
    "DOCKER",
    "RUN_LABEL",
    "TRACE_LABEL",
    "EngineNotFound",
    "EngineRefused",
    "EngineUnavailable",
    "FoundContainer",
    "installation_label",
    "run_labels",
]

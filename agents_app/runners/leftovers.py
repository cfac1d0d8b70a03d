"""Ends the processes and the container of a run whose worker and guard are both dead."""

import psutil

from agents_app.runners.containers.engine import DOCKER, DockerClient, EngineUnavailable
from agents_app.runners.containers.options import run_labels

WAIT_SECONDS = 2.0


def end_leftovers(run_id: int, trace_id: str) -> bool:
    """Kill processes on this host that have the run in their environment; False if one survives."""
    found = [process for process in psutil.process_iter() if _belongs(process, run_id, trace_id)]
    for process in found:
        try:
            process.kill()  # psutil compares the start time first, so a reused pid is safe
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied:
            return False
    _, alive = psutil.wait_procs(found, timeout=WAIT_SECONDS)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def end_container(run_id: int, trace_id: str, engine: DockerClient = DOCKER) -> bool:
    """Remove the container of a run; False if the engine does not answer."""
    try:
        for found in engine.find(*run_labels(run_id, trace_id)):
            engine.remove(found.container)
    except EngineUnavailable:
        return False
    return True


def _belongs(process: psutil.Process, run_id: int, trace_id: str) -> bool:
    """Compares the trace id, too: another installation on this host may have the same run id."""
    try:
        env = process.environ()
    except (psutil.Error, OSError):
        return False
    return env.get("DROVER_RUN_ID") == str(run_id) and env.get("DROVER_TRACE_ID") == trace_id

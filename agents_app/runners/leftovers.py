"""What is left of a run whose worker and guard are both gone, found by what it was given."""

import psutil

from agents_app.runners.container_options import run_labels
from agents_app.runners.docker_engine import ENGINE, Engine, EngineAway

WAIT_SECONDS = 2.0


def end_leftovers(run_id: int, trace_id: str) -> bool:
    """Kills its processes on this host, by their environment; False if one would not die."""
    found = [process for process in psutil.process_iter() if _belongs(process, run_id, trace_id)]
    for process in found:
        try:
            process.kill()  # psutil looks at the start time first: never another's process
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied:
            return False
    _, alive = psutil.wait_procs(found, timeout=WAIT_SECONDS)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def end_container(run_id: int, trace_id: str, engine: Engine = ENGINE) -> bool:
    """Removes the container of a run; False while nobody can say whether it is gone."""
    try:
        for found in engine.find(*run_labels(run_id, trace_id)):
            engine.remove(found.container)
    except EngineAway:
        return False
    return True


def _belongs(process: psutil.Process, run_id: int, trace_id: str) -> bool:
    """The trace, too: another installation on this host has runs of the same number."""
    try:
        env = process.environ()
    except (psutil.Error, OSError):
        return False
    return env.get("DROVER_RUN_ID") == str(run_id) and env.get("DROVER_TRACE_ID") == trace_id

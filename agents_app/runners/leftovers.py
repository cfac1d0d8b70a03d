"""Processes of a run whose worker and guard are both gone, found by their environment."""

import psutil

WAIT_SECONDS = 2.0


def end_leftovers(run_id: int, trace_id: str) -> bool:
    """Kills what is left of a run on this host; False if something would not die."""
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


def _belongs(process: psutil.Process, run_id: int, trace_id: str) -> bool:
    """The trace, too: another installation on this host has runs of the same number."""
    try:
        env = process.environ()
    except (psutil.Error, OSError):
        return False
    return env.get("DROVER_RUN_ID") == str(run_id) and env.get("DROVER_TRACE_ID") == trace_id

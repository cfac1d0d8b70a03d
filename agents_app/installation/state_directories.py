"""The directory of an agent that is kept between its runs, and the directories of runs."""

import shutil
from pathlib import Path


def state_directory(data: Path, agent_id: int) -> Path:
    return data / "state" / str(agent_id)


def run_directories(data: Path) -> Path:
    """The directory with a directory for each run, named by its number."""
    return data / "runs"


def remove_run_directory(data: Path, run_id: int) -> None:
    """Remove the directory on this host; other hosts keep theirs."""
    shutil.rmtree(run_directories(data) / str(run_id), ignore_errors=True)


def remove_state_directory(data: Path, agent_id: int) -> None:
    """Remove the directory on this host; other hosts keep theirs."""
    shutil.rmtree(state_directory(data, agent_id), ignore_errors=True)

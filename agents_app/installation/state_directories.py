"""The directory of an agent that is kept between its runs."""

import shutil
from pathlib import Path


def state_directory(data: Path, agent_id: int) -> Path:
    return data / "state" / str(agent_id)


def remove_state_directory(data: Path, agent_id: int) -> None:
    """Remove the directory on this host; other hosts keep theirs."""
    shutil.rmtree(state_directory(data, agent_id), ignore_errors=True)

"""The adapter of the suite skill.context_injection: commands are run as those of a run are."""

import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from agents_app.launch.hooks import TimedRunner, command_output
from agents_app.launch.injection import inject
from agents_app.runners import RUNNERS
from agents_app.runners.base import RunControl, RunSpec


def context_injection(case: dict[str, Any]) -> str:
    env = case["env"] | {"PATH": os.environ["PATH"]}
    with tempfile.TemporaryDirectory() as directory:
        prompt_file = Path(directory) / "prompt.md"
        prompt_file.touch()
        spec = RunSpec(
            run_id=1,
            argv=(),
            env=env,
            cwd=Path(directory),
            prompt_file=prompt_file,
            timeout_seconds=60,
        )
        stage = TimedRunner(RUNNERS["process"], RunControl(), 60)
        return inject(case["body"], partial(command_output, stage, spec))


ADAPTERS = {"skill.context_injection": context_injection}

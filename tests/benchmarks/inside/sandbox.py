"""The paths of the sandbox of a run, as the worker finds them."""

import os

from agents_app.launch.sandbox import SandboxChoice, sandbox_of


def paths(program: str) -> dict[str, tuple[str, ...]]:
    box = sandbox_of(SandboxChoice(), (), os.environ["PATH"], program)
    assert box is not None
    return {"own_read": box.own_read, "read": box.read, "write": box.write}

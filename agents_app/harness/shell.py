"""A harness for agents whose instructions are a shell script; the prompt is on its stdin."""

from agents_app.harness.base import Harness

# In the workdir of the run, which is its current directory.
SCRIPT = "script.sh"


def argv(_model: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    return ("sh", f"./{SCRIPT}", *arguments)


SHELL = Harness(argv, body_is_script=True, takes_model=False)

"""The agent's instructions are a shell script; what triggered the run is on its stdin."""

from agents_app.harness.base import Harness

# In the run's own directory, which is where it starts.
SCRIPT = "script.sh"


def argv(_model: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    return ("sh", f"./{SCRIPT}", *arguments)


SHELL = Harness(argv, body_is_script=True, takes_model=False)

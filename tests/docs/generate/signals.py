"""reference/signals.md from the declarations of the signals."""

from agents_app.signals import signal_reference
from tests.docs.generate.markdown import page


def render() -> str:
    title, _, text = signal_reference().partition("\n")
    return page(title.removeprefix("# "), "agents_app/signals/declarations.py", text)

"""Codex in exec mode: one JSON event per line, the sum of tokens with each finished turn."""

from agents_app.harness.base import Event, Harness, Report, part, spending_of, text_of
from agents_app.harness.usage import Spending, count

# The second name is that of older versions.
ANSWERS = {"agent_message", "assistant_message"}


def argv(model: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    chosen = ("--model", model) if model else ()
    # The workdir of a run is not a repository; `-` makes Codex read stdin.
    return ("codex", "exec", "--json", "--skip-git-repo-check", *chosen, *arguments, "-")


def inside_sandbox(command: tuple[str, ...]) -> tuple[str, ...]:
    """Without Codex's own sandbox, which needs rights that the sandbox of a run takes away."""
    if command[:2] != ("codex", "exec"):
        return command
    kept: list[str] = []
    words = iter(command[2:])
    for word in words:
        if word in ("--sandbox", "-s"):
            next(words, "")
        elif word != "--full-auto" and not word.startswith("--sandbox="):
            kept.append(word)
    return (*command[:2], "--sandbox", "danger-full-access", *kept)


class CodexReader:
    final_events = frozenset({"turn.completed", "turn.failed", "error"})

    def __init__(self) -> None:
        self._text = ""
        self._error = ""
        self._spending = Spending()

    def read(self, event: Event) -> None:
        match event.get("type"):
            case "item.completed":
                self._item(part(event, "item"))
            case "turn.completed":
                # The sum of all turns; an `error` before a completed turn was temporary.
                self._spending, self._error = _spending(part(event, "usage")), ""
            case "turn.failed":
                self._failed(part(event, "error"))
            case "error":
                self._failed(event)

    def report(self) -> Report:
        return Report("" if self._error else self._text, self._error, self._spending)

    def _item(self, item: Event) -> None:
        if (item.get("type") or item.get("item_type")) in ANSWERS:
            self._text = text_of(item.get("text"))

    def _failed(self, error: Event) -> None:
        self._error = f"codex: {text_of(error.get('message')) or 'failed without a reason'}"


def _spending(usage: Event) -> Spending:
    # Codex includes cached tokens in the input tokens.
    cached = count(usage.get("cached_input_tokens"))
    fresh = max(0, count(usage.get("input_tokens")) - cached)
    return spending_of(fresh, usage.get("output_tokens"), cached, None)


CODEX = Harness(
    argv,
    CodexReader,
    inside_sandbox=inside_sandbox,
    sandbox_note="Codex's own sandbox is off: it cannot start inside the sandbox of the run",
)

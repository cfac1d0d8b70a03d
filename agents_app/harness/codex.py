"""Codex without its screen: one JSON event a line, the sum of tokens with each finished turn."""

from agents_app.harness.base import Event, Harness, Report, part, spending_of, text_of
from agents_app.harness.usage import Spending, count

# Its name was another one once.
ANSWERS = {"agent_message", "assistant_message"}


def argv(model: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    chosen = ("--model", model) if model else ()
    # The room of a run is no repository; `-` is how it is told to read stdin.
    return ("codex", "exec", "--json", "--skip-git-repo-check", *chosen, *arguments, "-")


class CodexReader:
    last_words = frozenset({"turn.completed", "turn.failed", "error"})

    def __init__(self) -> None:
        self._text = ""
        self._error = ""
        self._spending = Spending()

    def read(self, event: Event) -> None:
        match event.get("type"):
            case "item.completed":
                self._item(part(event, "item"))
            case "turn.completed":
                # The sum of all turns so far; an `error` before it was only a hiccup.
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

    def _failed(self, said: Event) -> None:
        self._error = f"codex: {text_of(said.get('message')) or 'it failed, and did not say why'}"


def _spending(usage: Event) -> Spending:
    # Unlike others it counts what came from the cache among the input.
    cached = count(usage.get("cached_input_tokens"))
    fresh = max(0, count(usage.get("input_tokens")) - cached)
    return spending_of(fresh, usage.get("output_tokens"), cached, None)


CODEX = Harness(argv, CodexReader)

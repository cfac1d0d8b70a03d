"""Claude Code in print mode: one JSON object per line, the last one with the result."""

from agents_app.harness.base import Event, Harness, Report, part, spending_of, text_of
from agents_app.harness.usage import Spending, count


def argv(model: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    chosen = ("--model", model) if model else ()
    # Claude Code streams only with --verbose.
    return ("claude", "-p", "--output-format", "stream-json", "--verbose", *chosen, *arguments)


class ClaudeCodeReader:
    """A message is printed several times while it grows: the last one of an id counts."""

    final_events = frozenset({"result"})

    def __init__(self) -> None:
        self._by_message: dict[str, Spending] = {}
        self._summed = Spending()
        self._result = Report()

    def read(self, event: Event) -> None:
        if event.get("type") == "assistant":
            self._message(part(event, "message"))
        elif event.get("type") == "result":
            self._result = _result(event)

    def report(self) -> Report:
        """The sum in the result lacks sub-agents, the sum of the messages lacks the last tokens."""
        result = self._result
        return Report(result.text, result.error, result.spending.at_least(self._summed))

    def _message(self, message: Event) -> None:
        key, used = str(message.get("id")), _spending(message)
        self._summed = self._summed - self._by_message.get(key, Spending()) + used
        self._by_message[key] = used


def _result(event: Event) -> Report:
    text = text_of(event.get("result"))
    if event.get("is_error") is True or str(event.get("subtype", "")).startswith("error"):
        error = text or text_of(event.get("subtype")) or "failed without a reason"
        return Report(error=f"claude: {error}", spending=_spending(event))
    return Report(text=text, spending=_spending(event))


def _spending(event: Event) -> Spending:
    usage = part(event, "usage")
    cached = count(usage.get("cache_read_input_tokens"))
    cached += count(usage.get("cache_creation_input_tokens"))
    spent = (usage.get("input_tokens"), usage.get("output_tokens"), cached)
    # The cost is that of the whole process, also with several results.
    return spending_of(*spent, event.get("total_cost_usd"))


CLAUDE_CODE = Harness(argv, ClaudeCodeReader)

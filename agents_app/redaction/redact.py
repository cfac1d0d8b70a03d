"""Takes secrets out of what a run prints and says, in all their disguises; knows no tables."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from agents_app.redaction.encodings import PLAIN, VIEWS, View
from agents_app.runners import Outcome, OutputSink, RunControl, Runner, RunSpec

# A shorter text may turn up by chance, and taking it out would spoil what people read.
SHORTEST_SECRET = 8
SHORTEST_LINE = 16
_BETWEEN_WORDS = str.maketrans(dict.fromkeys("\"'=:,;", " "))


@dataclass(frozen=True, slots=True)
class SecretSpan:
    start: int
    end: int
    name: str


def parts_of(secret: str) -> set[str]:
    """What must not be seen of it: one line as a whole, of several those that say something.

    Also the long words in these lines: a file of settings is printed value by value."""
    if "\n" not in secret.strip():
        # A key file's content in one line, as JSON has it.
        return {secret.strip(), *_lines(secret.replace("\\n", "\n"))}
    lines = _lines(secret)
    words = {word for line in lines for word in line.translate(_BETWEEN_WORDS).split()}
    return lines | {w for w in words if len(w) >= SHORTEST_LINE and not w.startswith("//")}


def _lines(secret: str) -> set[str]:
    lines = (line.strip() for line in secret.replace("\r", "\n").split("\n"))
    return {ln for ln in lines if len(ln) >= SHORTEST_LINE and not ln.startswith("-----")}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is looked for in one view: each form, and the name it is replaced by."""

    view: View
    forms: Mapping[bytes, str]
    # So many bytes at the end of an output may be the beginning of one.
    reach: int
    letters: frozenset[int]

    @classmethod
    def of(cls, view: View, parts: Iterable[tuple[bytes, str]]) -> "_Wanted":
        forms = {form: name for part, name in parts for form in view.forms(part)}
        return cls(view, forms, max(map(len, forms)) * view.width, frozenset(b"".join(forms)))

    def unfinished_bytes(self, data: bytes) -> int:
        # Most pieces end with a line, and few secrets have line ends in them.
        if self.view is PLAIN and data[-1:] and data[-1] not in self.letters:
            return 0
        return _unfinished(self.view, self.forms, data[-self.reach :])


class Redactor:
    """The secrets of one run, each by the name that people see instead."""

    def __init__(self, secrets: Mapping[str, Iterable[str]]) -> None:
        self._secrets = secrets

    @cached_property
    def _wanted(self) -> list[_Wanted]:
        """Made when it is needed: many a run prints nothing."""
        parts = [
            (part.encode(errors="surrogateescape"), name)
            for name, texts in self._secrets.items()
            for text in texts
            for part in parts_of(text)
            if len(part) >= SHORTEST_SECRET
        ]
        return [_Wanted.of(view, parts) for view in VIEWS] if parts else []

    def clean(self, data: bytes) -> bytes:
        return _without(data, self.spans(data))

    def clean_text(self, text: str) -> str:
        data = text.encode(errors="surrogateescape")
        spans = self.spans(data)
        return _without(data, spans).decode(errors="surrogateescape") if spans else text

    def spans(self, data: bytes) -> list[SecretSpan]:
        """Where something stands that must not; in order, and without overlaps."""
        found: list[SecretSpan] = []
        for wanted in self._wanted:
            if wanted.view.is_worth_it(data):
                found += _spans(wanted.view, wanted.forms, data)
        return _merged(found) if found else found

    def unfinished_bytes(self, data: bytes) -> int:
        """How much at its end may become a secret with what is to come."""
        return max((wanted.unfinished_bytes(data) for wanted in self._wanted), default=0)


class Redacting:
    """A sink that passes everything on but secrets, wherever the pieces of an output end."""

    def __init__(self, sink: OutputSink, redactor: Redactor) -> None:
        self._sink = sink
        self._redactor = redactor
        self._kept_back: dict[int, bytes] = {}

    def feed(self, stream: int, data: bytes, at: float) -> None:
        if stream in self._kept_back:
            data = self._kept_back.pop(stream) + data
        spans = self._redactor.spans(data)
        after = spans[-1].end if spans else 0
        if unfinished := self._redactor.unfinished_bytes(data[after:] if after else data):
            self._kept_back[stream] = data[-unfinished:]
            data = data[:-unfinished]
        if data:
            self._sink.feed(stream, _without(data, spans), at)

    def flush(self) -> None:
        """What may be the beginning of a secret is not shown before it is known not to be one."""
        self._sink.flush()

    def finish(self, at: float) -> None:
        """Nothing is to come that could make a secret of what was kept back."""
        kept_back, self._kept_back = self._kept_back, {}
        for stream, data in kept_back.items():
            self._sink.feed(stream, data, at)


class RedactingRunner:
    """A runner whose output and errors have no secrets in them, whatever kind of runner it is."""

    def __init__(self, runner: Runner, redactor: Redactor) -> None:
        self._runner = runner
        self._redactor = redactor

    def run(self, spec: RunSpec, control: RunControl, sink: OutputSink) -> Outcome:
        redacting = Redacting(sink, self._redactor)
        try:
            outcome = self._runner.run(spec, control, redacting)
        finally:
            redacting.finish(time.time())
        if not outcome.error:
            return outcome
        return replace(outcome, error=self._redactor.clean_text(outcome.error))


# --- searching ------------------------------------------------------------------------------


def _spans(view: View, forms: Mapping[bytes, str], data: bytes) -> Iterator[SecretSpan]:
    seen = view.see(data)
    # One search for each, because bytes.find skips: it is many times faster than one expression.
    hits = [(at, len(form), name) for form, name in forms.items() for at in _everywhere(form, seen)]
    if hits:
        places = view.places(data)
        for at, length, name in hits:
            yield SecretSpan(places.starts[at], places.ends[at + length - 1], name)


def _everywhere(form: bytes, seen: bytes) -> Iterator[int]:
    at = seen.find(form)
    while at >= 0:
        yield at
        at = seen.find(form, at + 1)


def _merged(spans: list[SecretSpan]) -> list[SecretSpan]:
    spans.sort(key=lambda span: (span.start, -span.end))
    merged = spans[:1]
    for span in spans[1:]:
        last = merged[-1]
        if span.start >= last.end:
            merged.append(span)
        elif span.end > last.end:
            merged[-1] = SecretSpan(last.start, span.end, last.name)
    return merged


def _without(data: bytes, spans: list[SecretSpan]) -> bytes:
    if not spans:
        return data
    pieces, last = [], 0
    for span in spans:
        pieces += [data[last : span.start], f"[redacted {span.name}]".encode()]
        last = span.end
    return b"".join([*pieces, data[last:]])


def _unfinished(view: View, forms: Iterable[bytes], tail: bytes) -> int:
    begun = view.may_go_on(tail)
    if begun is None:
        return 0
    seen = view.see(begun)
    first = min(_beginning(form, seen) for form in forms)
    if first == len(seen):
        return len(tail) - len(begun)
    return len(tail) - view.places(begun).starts[first]


def _beginning(form: bytes, seen: bytes) -> int:
    """Where in it the form begins that does not end in it; its length, if nowhere."""
    first = form[:1]
    at = seen.find(first, max(0, len(seen) - len(form) + 1))
    while at >= 0 and not form.startswith(seen[at:]):
        at = seen.find(first, at + 1)
    return at if at >= 0 else len(seen)

"""Replaces secrets in the output and errors of runs, in every encoding; knows no tables."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from agents_app.redaction.encodings import OUTLINED, PLAIN, VIEWS, View, outline, outline_of_form
from agents_app.redaction.parts import SHORTEST_SECRET, secret_parts
from agents_app.runners import Outcome, OutputSink, RunControl, Runner, RunSpec

MARK = "[redacted {}]"
URI_MARK = "redacted-{}"
_NOT_IN_URIS = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class SecretSpan:
    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class _Forms:
    """The forms of all secrets in one encoding, and the name that replaces each."""

    view: View
    forms: Mapping[bytes, str]
    # The beginning of a form may be in this many bytes at the end of an output.
    reach: int
    letters: frozenset[int]

    @classmethod
    def of(cls, view: View, parts: Iterable[tuple[bytes, str]]) -> "_Forms":
        forms = {form: name for part, name in parts for form in view.forms(part)}
        return cls(view, forms, max(map(len, forms)) * view.width, frozenset(b"".join(forms)))

    def unfinished_bytes(self, data: bytes) -> int:
        # Most pieces end with a line end, and few secrets contain line ends.
        if self.view is PLAIN and data[-1:] and data[-1] not in self.letters:
            return 0
        return _unfinished(self.view, self.forms, data[-self.reach :])


class Redactor:
    """The secrets of one run, each with the name that is shown instead."""

    def __init__(self, secrets: Mapping[str, Iterable[str]]) -> None:
        self._secrets = secrets

    @cached_property
    def _encoded(self) -> list[_Forms]:
        """Computed on first use: many runs print nothing."""
        parts = [
            (part.encode(errors="surrogateescape"), name)
            for name, texts in self._secrets.items()
            for text in texts
            for part in secret_parts(text)
            if len(part) >= SHORTEST_SECRET
        ]
        return [_Forms.of(view, parts) for view in VIEWS] if parts else []

    def clean(self, data: bytes) -> bytes:
        return _without(data, self.spans(data))

    def clean_text(self, text: str, mark: str = MARK) -> str:
        data = text.encode(errors="surrogateescape")
        spans = self.spans(data)
        return _without(data, spans, mark).decode(errors="surrogateescape") if spans else text

    def clean_uri(self, uri: str) -> str:
        """The URI with marks that a URI may contain."""
        return self.clean_text(uri, URI_MARK)

    def spans(self, data: bytes) -> list[SecretSpan]:
        """The places of secrets, in order and without overlaps."""
        found: list[SecretSpan] = []
        searched = self._encoded
        if searched and self._outline_is_clean(data):
            searched = [forms for forms in searched if forms.view not in OUTLINED]
        for forms in searched:
            if forms.view.may_contain(data):
                found += _spans(forms.view, forms.forms, data)
        return _merged(found) if found else found

    @cached_property
    def _outlines(self) -> list[bytes]:
        outlined = (forms.forms for forms in self._encoded if forms.view in OUTLINED)
        return list({outline_of_form(form) for forms in outlined for form in forms})

    def _outline_is_clean(self, data: bytes) -> bool:
        """Whether the views in OUTLINED would find nothing."""
        seen = outline(data)
        return seen is not None and not any(each in seen for each in self._outlines)

    def unfinished_bytes(self, data: bytes) -> int:
        """The number of bytes at the end that may be the beginning of a secret."""
        return max((forms.unfinished_bytes(data) for forms in self._encoded), default=0)


class RedactingSink:
    """A sink that passes output on without secrets, wherever the output is cut into pieces."""

    def __init__(self, sink: OutputSink, redactor: Redactor) -> None:
        self._sink = sink
        self._redactor = redactor
        self._held_back: dict[int, bytes] = {}

    def feed(self, stream: int, data: bytes, at: float) -> None:
        if stream in self._held_back:
            data = self._held_back.pop(stream) + data
        spans = self._redactor.spans(data)
        after = spans[-1].end if spans else 0
        if unfinished := self._redactor.unfinished_bytes(data[after:] if after else data):
            self._held_back[stream] = data[-unfinished:]
            data = data[:-unfinished]
        if data:
            self._sink.feed(stream, _without(data, spans), at)

    def flush(self) -> None:
        """What may be the beginning of a secret stays held back."""
        self._sink.flush()

    def finish(self, at: float) -> None:
        """Passes on what was held back: the output has ended, so it is no secret."""
        held_back, self._held_back = self._held_back, {}
        for stream, data in held_back.items():
            self._sink.feed(stream, data, at)


class RedactingRunner:
    """A runner of any kind whose output and errors are passed on without secrets."""

    def __init__(self, runner: Runner, redactor: Redactor) -> None:
        self._runner = runner
        self._redactor = redactor

    def run(self, spec: RunSpec, control: RunControl, sink: OutputSink) -> Outcome:
        redacting = RedactingSink(sink, self._redactor)
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
    # One search for each form: bytes.find is many times faster than one regular expression.
    hits = [(at, len(form), name) for form, name in forms.items() for at in _places_of(form, seen)]
    if hits:
        places = view.places(data)
        for at, length, name in hits:
            yield SecretSpan(places.start(at), places.end(at + length - 1), name)


def _places_of(form: bytes, seen: bytes) -> Iterator[int]:
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


def _without(data: bytes, spans: list[SecretSpan], mark: str = MARK) -> bytes:
    if not spans:
        return data
    pieces, last = [], 0
    for span in spans:
        name = span.name if mark is MARK else _NOT_IN_URIS.sub("-", span.name)
        pieces += [data[last : span.start], mark.format(name).encode()]
        last = span.end
    return b"".join([*pieces, data[last:]])


def _unfinished(view: View, forms: Iterable[bytes], tail: bytes) -> int:
    begun = view.searched_end(tail)
    if begun is None:
        return 0
    seen = view.see(begun)
    first = min(_unfinished_place(form, seen) for form in forms)
    if first == len(seen):
        return len(tail) - len(begun)
    return len(tail) - view.places(begun).start(first)


def _unfinished_place(form: bytes, seen: bytes) -> int:
    """Where a form begins that does not end in `seen`; the length of `seen` if nowhere."""
    first = form[:1]
    at = seen.find(first, max(0, len(seen) - len(form) + 1))
    while at >= 0 and not form.startswith(seen[at:]):
        at = seen.find(first, at + 1)
    return at if at >= 0 else len(seen)

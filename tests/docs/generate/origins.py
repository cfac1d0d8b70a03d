"""reference/origins.md from the claims in claims/, one file for each of the five documents."""

import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.docs.generate.markdown import code, page, table

CLAIMS = Path(__file__).with_name("claims")
STATUSES = {
    "met": "Drover does the same, or more.",
    "differs": "Drover does something else, for the reason that is given.",
    "later": "Drover does not do it yet.",
}
_INTRODUCTION = """
Drover does what five schedulers for agents do, in one product. This page has every claim of the
pages that describe them, what Drover does, and the tests that fail if Drover does not do it. A
number names the document and the claim. Claims are in words of this page, not of the documents.

`tests/docs/test_origins.py` checks that each named test exists, that no number is missing, and that
each claim has a status.
"""


@dataclass(frozen=True)
class Claim:
    id: str
    claim: str
    status: str
    how: str
    # `path::name` of a test, or `path::class::name`.
    tests: tuple[str, ...]


@dataclass(frozen=True)
class ClaimSection:
    title: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Origin:
    """A document that describes another scheduler."""

    number: str
    title: str
    about: str
    sections: tuple[ClaimSection, ...]

    @property
    def claims(self) -> Iterator[Claim]:
        return (claim for section in self.sections for claim in section.claims)


@cache
def origins() -> tuple[Origin, ...]:
    return tuple(_origin(path) for path in sorted(CLAIMS.glob("*.toml")))


def _origin(path: Path) -> Origin:
    read = tomllib.loads(path.read_text())
    sections = (
        ClaimSection(
            one["title"], tuple(Claim(**{**c, "tests": tuple(c["tests"])}) for c in one["claim"])
        )
        for one in read["section"]
    )
    return Origin(path.stem, read["title"], read["about"], tuple(sections))


def render() -> str:
    counts = [Counter(claim.status for claim in origin.claims) for origin in origins()]
    totals = [
        (f"[{one.title}](#{one.number}-{one.title.lower().replace(' ', '-')})", *_numbers(count))
        for one, count in zip(origins(), counts, strict=True)
    ]
    totals.append(("all", *_numbers(sum(counts, Counter()))))
    return page(
        "Origins",
        "tests/docs/generate/claims",
        _INTRODUCTION,
        table(("status", "meaning"), [(code(name), text) for name, text in STATUSES.items()]),
        table(("document", "claims", *STATUSES), totals),
        *(_document(origin) for origin in origins()),
    )


def _numbers(count: Counter[str]) -> list[str]:
    return [str(count.total()), *(str(count[status]) for status in STATUSES)]


def _document(origin: Origin) -> str:
    sections = [
        f"### {section.title} ({origin.title})\n\n{_rows(section)}" for section in origin.sections
    ]
    return "\n\n".join([f"## {origin.number} {origin.title}", origin.about, *sections])


def _rows(section: ClaimSection) -> str:
    rows = [
        (one.id, one.claim, one.status, one.how, "<br>".join(map(code, one.tests)))
        for one in section.claims
    ]
    return table(("claim", "the document says", "status", "Drover", "test"), rows)

"""Every case of every suite in CONFORMANCE_CASES (default: cases/) goes through its adapter."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.adapters import ADAPTERS

CASES = Path(os.environ.get("CONFORMANCE_CASES") or Path(__file__).parent / "cases")
# Where a case leaves a value open, any value will do, as long as it is one and not an error.
UNSPECIFIED = "unspecified"


def load_suites(directory: Path) -> list[dict[str, Any]]:
    files = [json.loads(path.read_text("utf-8")) for path in sorted(directory.glob("*.json"))]
    return [file for file in files if "suite" in file]


SUITES = load_suites(CASES)


def agrees(actual: Any, expected: Any) -> bool:
    if expected == UNSPECIFIED:
        return actual is not None and not (isinstance(actual, dict) and "error" in actual)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return actual.keys() == expected.keys() and all(
            agrees(actual[key], value) for key, value in expected.items()
        )
    return bool(actual == expected)


@pytest.mark.parametrize("suite", [pytest.param(s["suite"], id=s["suite"]) for s in SUITES])
def test_a_suite_has_an_adapter(suite):
    assert suite in ADAPTERS, f"write an adapter for the suite {suite!r} in adapters.py"


def test_there_are_suites_to_run():
    assert SUITES, f"no suite found in {CASES}"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("suite", "case"),
    [
        pytest.param(suite["suite"], case, id=f"{suite['suite']}: {case['id']}")
        for suite in SUITES
        if suite["suite"] in ADAPTERS
        for case in suite["cases"]
    ],
)
def test_the_product_agrees_with_the_case(suite, case):
    actual = ADAPTERS[suite](case["input"])
    assert agrees(actual, case["expected"]), (
        f"input {case['input']!r}: expected {case['expected']!r}, got {actual!r}. "
        f"{case.get('note', '')}"
    )


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ({"error": True}, {"ms": UNSPECIFIED}),
        ({"error": True}, UNSPECIFIED),
        ({"ms": None}, {"ms": UNSPECIFIED}),
        ({"ms": 5, "more": 1}, {"ms": 5}),
        ([1, 2, 3], [1, 2]),
        (None, {"ms": 5}),
    ],
)
def test_the_comparison_is_strict(actual, expected):
    assert not agrees(actual, expected)
    assert agrees({"ms": 300000}, {"ms": UNSPECIFIED})

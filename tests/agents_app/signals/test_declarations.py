"""What is declared of a signal agrees with its handler, its command and its reference page."""

import inspect

import pytest

from agents_app.signals import SIGNALS, signal_reference
from agents_app.signals.contract import EXIT_CODES

NAMES = list(SIGNALS)


@pytest.mark.parametrize("name", NAMES)
def test_a_handler_takes_exactly_the_declared_fields(name: str):
    _run, _now, *parameters = inspect.signature(SIGNALS[name].handler).parameters
    assert parameters == [field.name for field in SIGNALS[name].fields]


@pytest.mark.parametrize("name", NAMES)
def test_a_command_sends_only_declared_fields(name: str):
    signal = SIGNALS[name]
    sent = {option.field for option in signal.command.options} | {signal.command.field} - {""}
    assert sent <= {field.name for field in signal.fields}


@pytest.mark.parametrize("name", NAMES)
def test_a_signal_is_written_to_a_file_only_if_the_file_is_read(name: str):
    signal = SIGNALS[name]
    assert (signal.without_gateway == "file") == (signal.columns_from_file is not None)


@pytest.mark.parametrize("name", NAMES)
def test_secrets_are_removed_from_every_text_of_a_signal(name: str):
    texts = [field for field in SIGNALS[name].fields if field.schema["type"] == "string"]
    assert all(field.free_text for field in texts)


def test_exit_codes_and_their_statuses_are_each_declared_once():
    codes = [each.code for each in EXIT_CODES]
    statuses = [status for each in EXIT_CODES for status in each.statuses]
    assert codes == list(range(13))
    assert len(statuses) == len(set(statuses))


def test_the_reference_page_has_every_signal_field_and_exit_code():
    page = signal_reference()
    for signal in SIGNALS.values():
        section = page.partition(f"\n## {signal.name}\n")[2].partition("\n## ")[0]
        assert f"drover {signal.name}" in section
        for field in signal.fields:
            assert f"| `{field.name}` | " in section
            assert field.description in section
    for each in EXIT_CODES:
        assert f"| {each.code} | {each.meaning} |" in page

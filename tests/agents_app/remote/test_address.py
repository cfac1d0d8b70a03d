"""Where a remote Drover is: addresses, tokens and warnings."""

import pytest

from agents_app.errors import ConfigError
from agents_app.remote import COMMANDS, read_address
from scheduler_project import command_table as table


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("https://drover.example/", "https://drover.example"),
        ("https://drover.example/v1", "https://drover.example"),
        (" http://localhost:8080 ", "http://localhost:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_an_address_has_no_path_of_the_api(url: str, read: str):
    address = read_address({"DROVER_URL": url, "DROVER_TOKEN": "t"})
    assert (address.url, address.warnings) == (read, ())


@pytest.mark.parametrize("url", ["http://10.0.0.7:8080", "http://drover.example"])
def test_a_token_that_crosses_a_network_in_clear_text_is_a_warning(url: str):
    (warning,) = read_address({"DROVER_URL": url, "DROVER_TOKEN": "t"}).warnings
    assert "not encrypted" in warning and "https" in warning


@pytest.mark.parametrize(
    "url", ["drover.example", "ftp://x", "https://", "http://x:port", "https://x?a=b", "http://["]
)
def test_what_is_no_address_is_refused(url: str):
    with pytest.raises(ConfigError, match="is not the address of a Drover"):
        read_address({"DROVER_URL": url, "DROVER_TOKEN": "t"})


def test_a_user_in_the_address_is_refused():
    with pytest.raises(ConfigError, match="the token says who you are"):
        read_address({"DROVER_URL": "https://me:secret@x", "DROVER_TOKEN": "t"})


def test_help_names_exactly_the_commands_that_work_remotely():
    assert set(COMMANDS) == table.REMOTE

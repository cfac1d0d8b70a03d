"""A session ends a while after a person last used it; pages that reload themselves do not count."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.test import Client

from agents_app.conf import CONF, read_conf
from agents_app.errors import ConfigError
from gateway_app.access.idle_sessions import USED_AT
from tests.agents_app.fleet import Fleet

PAGE = "/admin/runs/"
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def idle(fleet: Fleet, boss: Client) -> Client:
    """A user whose session was last used long ago, and expires in a minute."""
    stored = SessionStore(boss.cookies[settings.SESSION_COOKIE_NAME].value)
    stored[USED_AT] = 1
    stored.save()
    Session.objects.update(expire_date=datetime.now(UTC) + timedelta(minutes=1))
    return boss


def minutes_left() -> float:
    expiry = Session.objects.values_list("expire_date", flat=True).get()
    return (expiry - datetime.now(UTC)).total_seconds() / 60


@pytest.mark.parametrize("headers", [{}, {"Sec-Fetch-Mode": "navigate"}])
def test_opening_a_page_moves_the_expiry(idle: Client, headers: dict[str, str]):
    assert idle.get(PAGE, headers=HTML | headers).status_code == 200
    assert minutes_left() == pytest.approx(CONF.session_idle_minutes, abs=1)


def test_a_change_by_a_script_moves_the_expiry(idle: Client):
    idle.post(PAGE, headers={"Sec-Fetch-Mode": "cors"})
    assert minutes_left() > 2


def test_a_request_with_a_token_does_not(idle: Client):
    idle.post("/v1/agents/x/pause", headers={"Authorization": "Bearer x"})
    assert minutes_left() <= 1


@pytest.mark.parametrize(
    "headers",
    [
        HTML | {"HX-Request": "true"},
        HTML | {"Sec-Fetch-Mode": "cors"},
        # The poll of the log page over plain http, where browsers send no Sec-Fetch-Mode.
        {"Accept": "*/*"},
        {},
    ],
)
def test_a_page_that_reloads_itself_does_not(idle: Client, headers: dict[str, str]):
    assert idle.get(PAGE, headers=headers).status_code == 200
    assert minutes_left() <= 1


def test_the_use_is_not_stored_with_every_request(idle: Client):
    idle.get(PAGE, headers=HTML)
    Session.objects.update(expire_date=datetime.now(UTC) + timedelta(minutes=1))
    idle.get(PAGE, headers=HTML)
    assert minutes_left() <= 1


def test_a_session_that_was_not_used_for_too_long_is_over(idle: Client):
    Session.objects.update(expire_date=datetime.now(UTC) - timedelta(seconds=1))
    page = idle.get(PAGE)
    assert page.status_code == 302 and "/login/" in page["Location"]
    assert idle.get("/v1/runs").status_code == 401


def test_the_time_is_a_setting():
    assert CONF.session_idle_minutes * 60 == settings.SESSION_COOKIE_AGE
    assert read_conf({"DROVER_SESSION_IDLE_MINUTES": "15"}).session_idle_minutes == 15
    with pytest.raises(ConfigError, match="DROVER_SESSION_IDLE_MINUTES"):
        read_conf({"DROVER_SESSION_IDLE_MINUTES": "0"})


def test_a_visitor_without_a_session_gets_none(client: Any, db: None):
    client.get("/admin/login/")
    assert not Session.objects.exists()

"""A scripted GitHub, and a Drover that may send requests to loopback."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents_app.conf import CONF
from agents_app.models import tenant
from agents_app.work_sources import client, report
from tests.agents_app.work_sources.github_server import TOKEN, GitHubServer, serving_github
from tests.agents_app.work_sources.polling import WAITED


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    with serving_github() as server:
        yield server


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    conf = replace(
        CONF,
        outgoing_hosts=frozenset({"127.0.0.1"}),
        project=tmp_path,
        public_url="https://drover.test",
    )
    for module in (client, report, tenant):
        monkeypatch.setattr(module, "CONF", conf)
    WAITED.clear()

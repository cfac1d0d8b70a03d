"""A project with a rules file and a fleet."""

from pathlib import Path

import pytest

from agents_app.models import Tenant
from tests.agents_app.fleet import Fleet
from tests.agents_app.rules.engine.rules_clock import Rules


@pytest.fixture
def rules(fleet: Fleet, tmp_path: Path) -> Rules:
    # Times in rules are times of this zone.
    Tenant.objects.update(settings={"timezone": "UTC"})
    return Rules(tmp_path)

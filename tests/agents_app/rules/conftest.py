"""A project with a rules file, and a fleet that it is about."""

from pathlib import Path

import pytest

from agents_app.models import Tenant
from tests.agents_app.fleet import Fleet
from tests.agents_app.rules.ruling import Rules


@pytest.fixture
def rules(fleet: Fleet, tmp_path: Path) -> Rules:
    # What people write in a rule is meant in this zone.
    Tenant.objects.update(settings={"timezone": "UTC"})
    return Rules(tmp_path)

"""The pages of work sources and claims: queue, claims, outcomes, and links that lead only out."""

import pytest
from django.urls import reverse

from agents_app.models import WorkClaim, WorkSource
from tests.agents_app.fleet import NOON, Fleet

ITEM = {"id": "github-7", "title": "Count <b>sheep</b>", "priority": "high", "created_at": "2026"}


@pytest.fixture
def source(fleet: Fleet) -> WorkSource:
    return WorkSource.objects.create(
        tenant=fleet.tenant,
        type="github",
        name="o/r",
        fingerprint="x",
        queue=[ITEM | {"url": "javascript:alert(1)", "labels": ["ready"]}],
    )


def claim(fleet: Fleet, source: WorkSource, number: int, **columns: object) -> None:
    agent = fleet.tenant.agents.first() or fleet.agent()
    WorkClaim.objects.create(
        tenant=fleet.tenant,
        source=source,
        agent=agent,
        item_id=f"github-{number}",
        item_key=str(number),
        title=f"issue {number}",
        url=f"https://github.test/{number}",
        ready_at=NOON,
        created_at=NOON,
        **columns,
    )


def test_the_page_of_a_source_shows_queue_claims_and_outcomes(admin_client, fleet: Fleet, source):
    claim(fleet, source, 1, stage="claimed")
    claim(fleet, source, 2, stage="ended", outcome="succeeded", ended_at=NOON)
    page = admin_client.get(reverse("admin:agents_app_worksource_change", args=[source.pk]))
    text = page.content.decode()
    assert "Queue at the last poll: 1" in text
    assert "Count &lt;b&gt;sheep&lt;/b&gt;" in text
    assert 'href="javascript' not in text
    for number in (1, 2):
        assert f'href="https://github.test/{number}"' in text
    assert "dv-claimed" in text and "dv-succeeded" in text


def test_the_lists_show_sources_and_claims(admin_client, fleet: Fleet, source):
    claim(fleet, source, 1, stage="claimed")
    claim(fleet, source, 2, stage="ended", outcome="released", ended_at=NOON)
    sources = admin_client.get(reverse("admin:agents_app_worksource_changelist"))
    assert "o/r" in sources.content.decode()
    (row,) = sources.context["cl"].result_list
    assert row.open_claims == 1
    claims = admin_client.get(reverse("admin:agents_app_workclaim_changelist"))
    assert "issue 1" in claims.content.decode()
    assert "dv-released" in claims.content.decode()

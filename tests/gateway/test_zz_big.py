import time, pytest
from datetime import UTC, datetime, timedelta
from django.urls import reverse
from django.db import connection
from agents_app.models import *
from tests.agents.fleet import Fleet
def test_big(db):
    from django.contrib.auth.models import User
    from django.test import Client
    fleet = Fleet(Tenant.objects.create(name="default"))
    now = datetime.now(UTC)
    agents=[fleet.agent(f"a{n}") for n in range(50)]
    w=fleet.worker()
    items=WorkItem.objects.bulk_create([WorkItem(tenant=fleet.tenant,agent=agents[n%50],state="done",trigger="manual",created_at=now-timedelta(minutes=n/10),available_at=now,finished_at=now) for n in range(200000)],batch_size=2000)
    Run.objects.bulk_create([Run(tenant=fleet.tenant,agent=agents[n%50],work_item=i,state="succeeded" if n%20 else "failed",trigger="manual",created_at=now,worker=w,started_at=now,finished_at=now-timedelta(minutes=n/10)) for n,i in enumerate(items)],batch_size=2000)
    c=Client(); c.force_login(User.objects.create_superuser("x"))
    for u in [reverse("admin:index")]+[reverse(f"admin:agents_app_{n}_changelist") for n in ("agent","run","workitem","worker")]:
        c.get(u)
        from django.test.utils import CaptureQueriesContext
        with CaptureQueriesContext(connection) as q:
            t=time.time(); c.get(u); print(u, round(time.time()-t,3), len(q), max((float(x["time"]),x["sql"][:150]) for x in q))

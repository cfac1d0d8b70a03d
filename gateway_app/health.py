"""The health checks: /healthz of this process, /readyz of the whole installation."""

from datetime import UTC, datetime

from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse

from agents_app.database import schema_problem
from agents_app.runs import missing_processes, read_scheduler


def healthz(_request: HttpRequest) -> JsonResponse:
    """200 as long as this process responds; the other processes are not checked."""
    return JsonResponse({"ok": True})


def readyz(_request: HttpRequest) -> JsonResponse:
    """503 with the names of the missing processes, of the database, or what is wrong with its
    schema."""
    try:
        if problem := schema_problem():
            answer = {"ready": False, "missing": ["schema"], "problem": problem}
            return JsonResponse(answer, status=503)
        now = datetime.now(UTC)
        missing = missing_processes(read_scheduler(now), now)
    except DatabaseError:
        return JsonResponse({"ready": False, "missing": ["database"]}, status=503)
    return JsonResponse({"ready": not missing, "missing": missing}, status=503 if missing else 200)

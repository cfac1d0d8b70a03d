"""Is the gateway alive, and is the whole ready for work?"""

from datetime import UTC, datetime

from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse

from agents_app.runs import missing_processes


def healthz(_request: HttpRequest) -> JsonResponse:
    """This process answers; says nothing of the others."""
    return JsonResponse({"ok": True})


def readyz(_request: HttpRequest) -> JsonResponse:
    try:
        report = missing_processes(datetime.now(UTC))
    except DatabaseError:
        return JsonResponse({"ready": False, "missing": ["database"]}, status=503)
    return JsonResponse({"ready": not report, "missing": report}, status=503 if report else 200)

"""Work sources: issues and files that schedules fetch, claim, work on and report about.

Belongs here: polls, claims as rows, prompts and reports of items.
Does not belong here: requests to other systems (work_sources.kinds), states of work (runs).
"""

from agents_app.work_sources.claims import has_polling_firings
from agents_app.work_sources.poll import serve_source
from agents_app.work_sources.threads import serve_work_sources

__all__ = ["has_polling_firings", "serve_source", "serve_work_sources"]

"""Receives webhooks in front of Django and commits them in groups.

Belongs here: requests, limits and answers.
Does not belong here: signatures (agents_app.webhooks.providers) and rows (agents_app.webhooks).
"""

from gateway_app.webhooks.receive import Webhooks

__all__ = ["Webhooks"]

"""The HTTP edge of Drover: API, streams, webhooks, signals, metrics.

Belongs here: requests, responses and limits.
Does not belong here: tables and decisions (agents_app).
"""

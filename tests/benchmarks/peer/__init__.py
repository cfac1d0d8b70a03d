"""The peer: plain Celery and django-celery-beat, doing what they do without Drover."""

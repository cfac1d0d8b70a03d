"""The peer: plain Celery and django-celery-beat."""

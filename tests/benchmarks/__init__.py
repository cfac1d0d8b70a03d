"""Benchmarks of Drover beside a plain Celery on the same machine at the same time."""

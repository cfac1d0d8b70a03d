"""The worker process of a scheduler: `python -m agents_app.scheduler NAME THREADS`."""

import sys

import django
from django.utils.module_loading import import_string

if __name__ == "__main__":
    django.setup()
    # By name: the module has tables, which need Django.
    import_string("agents_app.scheduler.serve_worker.serve_worker")(sys.argv[1], int(sys.argv[2]))

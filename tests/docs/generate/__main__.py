"""Writes the reference pages, with a database of its own that is removed afterwards."""

import os
import tempfile

with tempfile.TemporaryDirectory(prefix="drover-docs-") as directory:
    os.environ |= {"DROVER_DATA": directory, "DROVER_LOG_LEVEL": "error"}
    os.environ.pop("DATABASE_URL", None)
    os.environ["DJANGO_SETTINGS_MODULE"] = "scheduler_project.settings"

    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)

    from tests.docs.generate.pages import write_all

    for path in write_all():
        print(f"docs/{path} is written anew")

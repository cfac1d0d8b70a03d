#!/usr/bin/env python
"""Drover's command line."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
    from django.core.management import execute_from_command_line

    from agents_app.errors import DroverError
    from agents_app.text import harmless

    try:
        execute_from_command_line(sys.argv)
    except DroverError as error:
        sys.stderr.write(f"drover: {harmless(str(error))}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

#!/usr/bin/env python
"""Drover's command line in a checkout; `drover` is the same for an installed package."""

import sys

from scheduler_project.command import call_django, guarded


def main() -> None:
    guarded(lambda: call_django(sys.argv))


if __name__ == "__main__":
    main()

"""The parser of subcommands whose positional arguments may stand after options."""

from django.core.management.base import CommandParser

from agents_app.console import AnyOrder


class AnyOrderParser(AnyOrder, CommandParser):
    pass

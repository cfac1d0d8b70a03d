"""The commands that work with a remote Drover: they send requests to its API.

Belongs here: requests, streams, and looking objects up by name, without Django and a project.
Does not belong here: arguments and output, which the commands of this machine share (console).
"""

from agents_app.remote.address import Address, read_address
from agents_app.remote.command import COMMANDS, call, list_names

__all__ = ["COMMANDS", "Address", "call", "list_names", "read_address"]

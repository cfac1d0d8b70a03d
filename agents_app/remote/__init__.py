"""The commands that work with a remote Drover: they send requests to its API.

Belongs here: requests, streams, and looking objects up by name, without Django and a project.
Does not belong here: arguments and output, which the commands of this machine share (console).
"""

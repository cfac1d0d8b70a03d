"""`scheduler.rules`: one-line rules about the fleet, evaluated every ten seconds.

Belongs here: two packages, `language` (text of rules) and `engine` (evaluation and actions).
Does not belong here: modules of its own.
"""

"""Receives the signals of running agents in front of Django.

Belongs here: requests, rate and size limits, answers.
Does not belong here: the meaning of a signal (agents_app.signals).
"""

from gateway_app.signals.receive import Signals

__all__ = ["Signals"]

"""The Django project: settings, addresses, and what the processes of Drover start with.

Every process imports this package first. It leaves out two things that a start does not need, and
a command starts in three quarters of the time.
"""

import gc
import sys

# Objects that are made while modules are loaded stay. To search them for cycles takes a seventh of
# the start; agents_app.apps enables the search when all applications are loaded.
gc.disable()

# structlog imports rich to print tracebacks on a terminal. Drover's log lines are JSON, and the
# output of commands imports rich itself when it goes to a terminal.
if "rich" not in sys.modules:
    sys.modules["rich"] = None  # type: ignore[assignment]
    import structlog  # noqa: F401

    del sys.modules["rich"]

"""What every test may ask for; the parts themselves live in tests/parts."""

import signal

pytest_plugins = ["tests.parts.fixtures"]

# A shell makes what it starts in the background ignore these, and that is inherited for ever.
for _number, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

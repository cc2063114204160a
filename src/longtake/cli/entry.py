"""The console script: until the command line is there to end tidily, Ctrl-C ends the process without a traceback."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from longtake.cli import app


def main() -> None:
    """Run the command line and leave with its status."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    app.main()

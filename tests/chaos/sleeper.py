"""A pilot that is stopped (SIGSTOP) right before its first final reports: whoever continues it after its lease makes it late.

`python -m tests.chaos.sleeper` takes the arguments of the pilot and is one in everything else.
"""

from __future__ import annotations

import os
import signal
import sys

from brokerage.pilot.__main__ import main
from brokerage.pilot.messages import Message
from brokerage.pilot.run import Run

SLEEPS = 2
"""How many reports of this process are held up; later ones are not."""

_report = Run._report
_slept = iter(range(SLEEPS))


def report_after_a_stop(run: Run, message: Message) -> bool:
    """Stop, and report once continued."""
    if next(_slept, None) is not None:
        run.log.say("stops before it reports")
        os.kill(os.getpid(), signal.SIGSTOP)
    return _report(run, message)


if __name__ == "__main__":
    Run._report = report_after_a_stop  # type: ignore[method-assign, assignment]
    sys.exit(main())

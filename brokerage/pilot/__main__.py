"""`python -m brokerage.pilot`: arguments and exit codes.

Exit code 0: told to stop or nothing more to do; 2: arguments, or the server refuses this pilot; 3: a payload cannot be ended; 4:
slot taken.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from brokerage.pilot.clocks import Wake
from brokerage.pilot.joblog import Log
from brokerage.pilot.loop import EnrolmentRefused, Offer, Pilot, SlotTaken
from brokerage.pilot.messages import Submitted
from brokerage.pilot.run import PilotPlace


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m brokerage.pilot", description="Run jobs of one computing queue in one slot of this machine."
    )
    parser.add_argument(
        "--server", required=True, type=address, metavar="URL", help="address of the server, http(s)://host[:port]"
    )
    parser.add_argument("--queue", required=True, help="computing queue")
    parser.add_argument("--slot", required=True, help="name of the slot, unique on this machine")
    parser.add_argument("--enrolment-file", required=True, type=Path, metavar="FILE", help="file that holds the enrolment secret")
    parser.add_argument("--work", required=True, type=Path, metavar="DIR", help="folder of this slot; jobs run below it")
    parser.add_argument("--software", required=True, type=Path, metavar="DIR", help="folder of the transformations of this site")
    parser.add_argument(
        "--journal", type=Path, metavar="DIR", help="folder shared by the pilots of the queue (default: journal beside --work)"
    )
    parser.add_argument(
        "--operations", type=Path, metavar="FILE", help="append a JSON line for every final report that the server answered"
    )
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--payload-uid", type=user, metavar="UID", help="run payloads as this user, who needs no name; the pilot must be root"
    )
    who.add_argument(
        "--hide",
        type=Path,
        action="append",
        metavar="DIR",
        help="run payloads in a user namespace in which all but their own folder is read-only and DIR is empty (repeatable)",
    )
    parser.add_argument("--cores", type=int, default=1, help="cores of the slot (default %(default)s)")
    parser.add_argument(
        "--memory-mb", type=int, default=2000, metavar="MB", help="memory of the slot in 10^6 bytes (default %(default)s)"
    )
    parser.add_argument("--disk-mb", type=int, default=5000, metavar="MB", help="scratch disk of the slot (default %(default)s)")
    parser.add_argument("--walltime-s", type=float, default=86400.0, metavar="S", help="life of the pilot (default %(default)s)")
    parser.add_argument("--job", type=int, metavar="ID", help="the only job to run, which was submitted with this pilot")
    parser.add_argument("--pilot-id", metavar="UUID", help="the number that this pilot has by that; goes with --job")
    parser.add_argument("--once", action="store_true", help="end after one job")
    parser.add_argument(
        "--idle-exit", type=float, metavar="S", help="end after so many seconds without a job (0: at the first empty answer)"
    )
    return parser


def address(text: str) -> str:
    """An http(s) address; ValueError for anything else."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(text)
    return text


def user(text: str) -> int:
    """A user other than root; ValueError for anything else, and for a pilot that cannot change its user."""
    uid = int(text)
    if uid <= 0 or os.geteuid() != 0:
        raise argparse.ArgumentTypeError("must be a number above 0, and the pilot must run as root")
    return uid


def main() -> int:
    """Run a pilot; its exit code."""
    _open_standard_streams()
    parser = arguments()
    options = parser.parse_args()
    if (options.job is None) != (options.pilot_id is None):
        parser.error("--job and --pilot-id go together")
    if not sys.platform.startswith("linux"):
        print("the local pilot needs Linux", file=sys.stderr)
        return 2
    if not options.software.is_dir():
        # It would take job after job and fail each: no program of any task is there.
        parser.error(f"--software: {options.software} is no folder that can be reached")
    work = options.work.resolve()
    place = PilotPlace(
        url=options.server,
        slot=options.slot,
        work=work,
        software=options.software.resolve(),
        journal=options.journal.resolve() if options.journal else work.parent / "journal",
        operations=options.operations.resolve() if options.operations else None,
        payload_uid=options.payload_uid,
        hidden=tuple(folder.resolve() for folder in options.hide) if options.hide else None,
    )
    offer = Offer(
        queue=options.queue,
        enrolment_file=options.enrolment_file,
        cores=options.cores,
        memory_mb=options.memory_mb,
        disk_mb=options.disk_mb,
        walltime_s=options.walltime_s,
        once=options.once,
        idle_exit_s=options.idle_exit,
        submitted=None if options.job is None else Submitted(options.job, options.pilot_id),
    )
    log = Log(options.slot)
    wake = Wake()
    wake.stop_on_signals()
    pilot = Pilot(place, offer, wake, log)
    try:
        pilot.serve()
    except EnrolmentRefused as problem:
        log.say(f"ends: {problem}")
        return 2
    except SlotTaken as problem:
        log.say(f"ends: {problem}")
        return 4
    return 3 if pilot.keeper.unkillable else 0


def _open_standard_streams() -> None:
    """A closed standard stream would give its number to a pipe or socket, which a payload would then find as its own."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


if __name__ == "__main__":
    sys.exit(main())

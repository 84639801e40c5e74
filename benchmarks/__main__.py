"""`python -m benchmarks NAME [options]`: JSON lines, the last one the result. `all` runs every benchmark, one line each."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from types import ModuleType

from benchmarks import agents, brokerage, cycle, dispatch, flow, generation, pages, reports, transfers, tree
from benchmarks.server import shared_tables

NAMES: dict[str, ModuleType] = {
    "dispatch": dispatch,
    "reports": reports,
    "brokerage": brokerage,
    "cycle": cycle,
    "agents": agents,
    "generation": generation,
    "flow": flow,
    "transfers": transfers,
    "pages": pages,
    "tree": tree,
}

ALL = (
    ("dispatch",),
    ("dispatch", "--waiting", "100000"),
    ("dispatch", "--http"),
    ("reports",),
    ("reports", "--http"),
    ("brokerage",),
    ("cycle",),
    ("agents",),
    ("generation",),
    ("flow",),
    ("transfers",),
    ("transfers", "--size", "1000", "--rounds", "1"),
    ("transfers", "--hung"),
    ("transfers", "--open", "1000000"),
    ("pages", "--jobs", "20000", "--times", "10"),
    ("tree", "--elements", "50000", "--rounds", "3"),
)
"""What `all` runs: sizes that fit into a few minutes."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one benchmark, or all: the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    names.add_parser("all", help="every benchmark, one line each")
    for name, module in NAMES.items():
        doc = (module.__doc__ or "").strip()
        module.add_arguments(names.add_parser(name, help=doc.splitlines()[0], description=doc))
    options = parser.parse_args(argv)
    if options.name == "all":
        with shared_tables():
            return run_all(ALL)
    for line in NAMES[options.name].run(options):
        print(json.dumps(line), flush=True)
    return 0


def run_all(runs: Iterable[Sequence[str]]) -> int:
    """Run each in a process of its own; prints its last line."""
    failed = 0
    for arguments in runs:
        ran = subprocess.run([sys.executable, "-m", "benchmarks", *arguments], stdout=subprocess.PIPE, text=True, check=False)
        failed |= ran.returncode
        print(ran.stdout.strip().rpartition("\n")[2], flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())

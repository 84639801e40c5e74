"""Takes as much memory and time as it is told, then writes one line or fails: a payload whose needs and end are known."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

PAGE_BYTES = 4096


def main() -> None:
    """Write the line with the serial number, and that it is one event for whoever keeps the books."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serial", type=int, required=True, help="number of this file in its task")
    parser.add_argument("--memory", type=int, default=0, metavar="MB", help="how much memory to fill")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long to hold it")
    parser.add_argument("--fail", default="", metavar="MESSAGE", help="write nothing, say this and end with an error")
    parser.add_argument("--fail-every", type=int, default=1, metavar="N", help="only where N divides the serial number")
    parser.add_argument("--out", required=True, help="file to write")
    options = parser.parse_args()
    held = bytearray(options.memory * 1_000_000)
    for page in range(0, len(held), PAGE_BYTES):
        held[page] = 1
    time.sleep(options.seconds)
    if options.fail and options.serial % options.fail_every == 0:
        sys.exit(f"ERROR {options.fail}")
    Path(options.out).write_text(f"{options.serial}\n", encoding="ascii")
    books = {"files": {"output": [{"subFiles": [{"name": options.out, "nentries": 1}]}]}}
    Path("jobReport.json").write_text(json.dumps(books), encoding="ascii")
    print(f"held {options.memory} MB for {options.seconds} s")


if __name__ == "__main__":
    main()

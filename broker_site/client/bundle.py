"""The client as one file that Python runs: `python3 -m broker_site.client.bundle FILE`, which `make client` does.

The same sources give the same bytes. The file is also a place to import from: `PYTHONPATH=build/broker`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

PACKAGE = Path(__file__).resolve().parent
SHEBANG = b"#!/usr/bin/env python3\n"
BEGINNING = """import sys

if sys.version_info < (3, 9):
    sys.exit("broker needs Python 3.9 or newer; this is %d.%d" % sys.version_info[:2])

from broker_site.client.command.main import main

sys.exit(main())
"""
"""What runs first: in words that any Python 3 reads."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time that a file in an archive has when it has none."""


def write(target: Path) -> None:
    """Write the file, whole or not at all, ready to be run."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.new")
    with new.open("wb") as out:
        out.write(SHEBANG)
        with ZipFile(out, "w", ZIP_DEFLATED) as archive:
            for name, text in sorted(_members()):
                entry = ZipInfo(name, EPOCH)
                entry.compress_type = ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, text)
    new.chmod(0o755)
    new.replace(target)


def _members() -> Iterator[tuple[str, str]]:
    """Name in the archive and text."""
    yield "__main__.py", BEGINNING
    root = PACKAGE.parent.parent
    yield "broker_site/__init__.py", (PACKAGE.parent / "__init__.py").read_text(encoding="utf-8")
    for path in PACKAGE.rglob("*.py"):
        yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
    sys.stdout.write(f"{sys.argv[1]}\n")

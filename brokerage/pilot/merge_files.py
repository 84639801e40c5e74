"""The pilot's own program for jobs that merge files: arguments `input,input:output`, each output made of its inputs in order.

Files are appended to each other, which is what texts, JSON lines and gzip streams allow; of tar archives the members become those
of one archive, below a folder for each input. It runs as a payload, by itself, without any other file of ours.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

ARCHIVES = (".tgz", ".tar.gz", ".tar")


def merge(inputs: Sequence[Path], output: Path) -> None:
    """Make one file of several. OSError, tarfile.TarError where one cannot be read."""
    if output.name.endswith(ARCHIVES):
        _merge_archives(inputs, output)
        return
    with output.open("wb") as whole:
        for path in inputs:
            with path.open("rb") as part:
                shutil.copyfileobj(part, whole, 1 << 20)


def _merge_archives(inputs: Sequence[Path], output: Path) -> None:
    with tarfile.open(output, "w" if output.suffix == ".tar" else "w:gz") as whole:
        for path in inputs:
            with tarfile.open(path) as part:
                for member in part:
                    content = part.extractfile(member) if member.isfile() else None
                    member.name = f"{path.name}/{member.name.lstrip('/')}"
                    whole.addfile(member, content)


def main(arguments: Sequence[str]) -> int:
    """Merge what the command line says; 2: it says nothing that can be done."""
    if not arguments:
        sys.stderr.write("nothing to merge: arguments are input,input:output\n")
        return 2
    for pair in arguments:
        names, colon, output = pair.rpartition(":")
        if not (names and colon and output):
            sys.stderr.write(f"{pair}: expected input,input:output\n")
            return 2
        inputs = [Path(name) for name in names.split(",")]
        merge(inputs, Path(output))
        sys.stdout.write(f"merged {len(inputs)} files into {output}: {Path(output).stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

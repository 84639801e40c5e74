"""`python -m broker_site.roof.embedded` (`make clean`): stop what crashed runs of this folder left, and remove all instances'
data."""

from __future__ import annotations

import os
import shutil
import sys

from broker_site.roof.embedded.instance import ROOT, Instance
from broker_site.roof.embedded.place import STATE, known_instances, shared_folder


def main() -> int:
    """Remove all instances that nobody uses; 1 if somebody uses one."""
    top = ROOT / STATE
    used = [name for name in known_instances(ROOT) if not Instance(name).remove()]
    if used:
        print(f"still in use, so kept: {', '.join(used)}", file=sys.stderr)
        return 1
    if os.geteuid() == 0:
        shutil.rmtree(shared_folder(ROOT), ignore_errors=True)
    shutil.rmtree(top, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

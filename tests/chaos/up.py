"""`python -m tests.chaos.up SOFTWARE`: `manage.py up`, whose pilots have the software of a campaign, not that of the demo."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import manage

_execute = manage.execute


def execute_with_software(argv: Sequence[str]) -> int:
    """Run the command with the campaign's software."""
    import django

    django.setup()
    from broker_site.roof.supervisor import local_site

    local_site.SOFTWARE = Path(sys.argv[1])
    return _execute(argv)


if __name__ == "__main__":
    manage.execute = execute_with_software
    sys.exit(manage.main(["manage.py", "up"]))

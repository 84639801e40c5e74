"""`python -m broker_site.client` is the command `broker`."""

from __future__ import annotations

import sys

from broker_site.client.command.main import main

if __name__ == "__main__":
    sys.exit(main())

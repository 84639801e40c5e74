"""`manage.py mover`: the process that copies files between storage endpoints for the transfer backend `local`."""

from __future__ import annotations

import os
import resource
import signal
from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection

from brokerage.mover.process import Mover


class Command(BaseCommand):
    help = "Copy files between storage endpoints, as the agent transfer orders it, until SIGTERM or SIGINT."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Ends without waiting for threads: one may hang in a storage that is not there."""
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        mover = Mover()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: mover.stop())
        mover.run()
        connection.close()
        self.stdout.flush()
        os._exit(0)

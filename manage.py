#!/usr/bin/env python
"""Operator commands. Without DATABASE_URL they use the private servers of this folder, started for the command if need be."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "broker_site.settings")
    if not os.environ.get("SECRET_KEY") and not os.environ.get("SECRET_KEY_FILE"):
        os.environ.setdefault("GRIDBROKER_PROFILE", "local")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

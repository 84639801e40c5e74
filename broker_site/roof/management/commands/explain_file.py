"""`manage.py explain_file DATASET LFN [--at STORAGE]`: where a file is, and why it is not where it is wanted."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.kernel.registry import nearest
from brokerage.models import StorageEndpoint
from brokerage.queries.file_arrival import arrival_of
from brokerage.queries.transfer_parts import catalogue_file
from brokerage.rules.explain.file_arrival import sentence


class Command(BaseCommand):
    help = "Tell where a file is, and why it is not where it is wanted."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset", metavar="DATASET", help="name of the dataset in the catalogue")
        parser.add_argument("lfn", metavar="LFN", help="name of the file in it")
        parser.add_argument("--at", default="", metavar="STORAGE", help="where it is wanted; without it, wherever it goes")
        parser.add_argument("--vo", default="", metavar="VO", help="whose dataset it is, where several VOs have one of that name")
        parser.add_argument("--json", action="store_true", help="one JSON document instead of text")

    def handle(self, *args: Any, **options: Any) -> None:
        """One sentence; CommandError where there is no such file or storage."""
        file = catalogue_file(options["dataset"], options["lfn"], options["vo"], VoScope(everything=True))
        if file is None:
            raise CommandError(f"there is no file {options['lfn']} in a dataset {options['dataset']}")
        storages = list(StorageEndpoint.objects.values_list("name", flat=True))
        if options["at"] and options["at"] not in storages:
            near = nearest(options["at"], storages)
            raise CommandError(f"there is no storage {options['at']}" + (f"; the nearest name is {near}" if near else ""))
        arrival = arrival_of(file, options["at"])
        if not options["json"]:
            self.stdout.write(sentence(arrival))
            return
        document = {
            "dataset": file.dataset.name,
            "lfn": file.lfn,
            "storage": options["at"],
            "here": arrival.here,
            "why": sentence(arrival),
            "copies": [{"storage": c.storage, "state": c.state, "kind": c.kind} for c in arrival.copies],
        }
        self.stdout.write(json.dumps(document, indent=1))

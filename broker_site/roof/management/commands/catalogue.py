"""`manage.py catalogue`: whose the datasets of the catalogue are: `list` those that nobody has, `give` them to a VO; `close` them
when no more files come; make files of theirs again that are lost (`recover`).
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q

from broker_site.foundation.access.authentication import roles_of
from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.sql.wildcards import named
from workqueues.catalogue import CatalogueUnavailable, DatasetKey
from workqueues.catalogue.lost_files import StillThere, check_lost_files
from workqueues.ledger.open_inputs import StillWritten, close_dataset
from workqueues.ledger.outputs import CannotGive, give_datasets
from workqueues.ledger.recovery import CannotRecover, recover
from workqueues.models import CatalogueDataset


class Command(BaseCommand):
    """A dataset is seen by its VO only; one that was imported before datasets had VOs may have none."""

    help = "List datasets that no VO has, give datasets to a VO, close them, or make lost files of theirs again."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|give|close|recover")
        listing = verbs.add_parser("list", help="datasets of a VO, by name; without --vo those that nobody has")
        listing.add_argument("--vo", default="")
        give = verbs.add_parser("give", help="make datasets those of a VO")
        give.add_argument("names", nargs="+", metavar="NAME", help="name; * and ? are wildcards")
        give.add_argument("--vo", required=True)
        give.add_argument("--owner", default="", help="user who may write to them; without: who has the role production")
        give.add_argument("--from", dest="of", default="", metavar="VO", help="whose they are now; without: nobody's")
        close = verbs.add_parser("close", help="no more files come to datasets of a VO")
        close.add_argument("names", nargs="+", metavar="NAME")
        close.add_argument("--vo", required=True)
        lost = verbs.add_parser("recover", help="make lost files of a dataset again, under the same names")
        lost.add_argument("name", metavar="NAME", help="name of the dataset")
        lost.add_argument("files", nargs="+", metavar="FILE", help="names of the lost files")
        lost.add_argument("--vo", required=True)
        lost.add_argument("--force", action="store_true", help="also files of which a copy is intact")

    def handle(self, *args: Any, **options: Any) -> None:
        """CommandError when nothing can be given."""
        if options["verb"] == "list":
            self._list(options["vo"])
        elif options["verb"] == "close":
            self._close(options["names"], options["vo"])
        elif options["verb"] == "recover":
            self._recover(DatasetKey(options["vo"], options["name"]), options["files"], force=options["force"])
        else:
            self._give(options["names"], options["vo"], options["owner"], options["of"])

    def _list(self, vo: str) -> None:
        datasets = CatalogueDataset.objects.filter(vo=vo).order_by("name").values_list("name", "owner", "state")
        none = True
        for dataset in datasets.iterator():
            none = False
            self.stdout.write("  ".join(filter(None, dataset)))
        if none:
            self.stderr.write(f"VO {vo} has no datasets" if vo else "every dataset has a VO")

    def _close(self, names: list[str], vo: str) -> None:
        known = dict(CatalogueDataset.objects.filter(vo=vo, name__in=names).values_list("name", "id"))
        if missing := [name for name in names if name not in known]:
            raise CommandError(f"VO {vo} has no dataset {missing[0]}; nothing was closed")
        for name in names:
            try:
                close_dataset(known[name])
            except StillWritten as refused:
                raise CommandError(str(refused)) from None
            self.stdout.write(f"{name} is closed")

    def _recover(self, key: DatasetKey, files: list[str], *, force: bool) -> None:
        try:
            if not force:
                check_lost_files(key, files)
            tasks = recover(key, files, SYSTEM)
        except (CannotRecover, StillThere, CatalogueUnavailable) as refused:
            raise CommandError(str(refused)) from None
        for task in tasks:
            params = task.params.task_params
            n = len(params["lostFiles"])
            self.stdout.write(f"task {task.id} makes {n} file{'' if n == 1 else 's'} of {params['oldDatasetName']} again")

    def _give(self, names: list[str], vo: str, owner: str, of: str) -> None:
        if owner and not roles_of(owner, vo):
            raise CommandError(f"no user {owner} has a role in VO {vo}")
        condition = Q()
        for name in names:
            condition |= named("name", name)
        try:
            datasets = give_datasets(condition, vo, owner, of=of)
        except CannotGive as problem:
            raise CommandError(str(problem)) from None
        if not datasets:
            raise CommandError(
                f"VO {of} has no such dataset" if of else "no dataset of this name is without a VO; see catalogue list"
            )
        n = len(datasets)
        self.stdout.write(f"{n} dataset{'' if n == 1 else 's'} given to VO {vo}")
        self.stdout.write(f"files stay where they lie; new ones go to folders of {vo}/ below each endpoint")

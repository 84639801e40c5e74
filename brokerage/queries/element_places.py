"""At which sites of the grid elements of tasks may run: where their data are, and what the task says of sites (row W2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from brokerage.models import ComputingQueue, QueueStorage, Site, StorageEndpoint
from workqueues.catalogue import catalogue
from workqueues.models import Dataset, Task
from workqueues.rules.elements.element_sites import SiteWishes, possible_sites
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.refine import dataset_key


@dataclass(frozen=True, slots=True)
class GridPlaces:
    """The grid as elements see it: all sites, the sites that read each storage endpoint, the site of each queue."""

    sites: frozenset[str]
    readers: Mapping[str, frozenset[str]]
    site_of_queue: Mapping[str, str]

    @classmethod
    def load(cls) -> GridPlaces:
        readers: dict[str, set[str]] = {name: {site} for name, site in StorageEndpoint.objects.values_list("name", "site_id")}
        reading = QueueStorage.objects.filter(access__startswith="read").values_list("storage_id", "queue__site_id").distinct()
        for storage, site in reading:
            readers.setdefault(storage, set()).add(site)
        return cls(
            frozenset(Site.objects.values_list("name", flat=True)),
            {storage: frozenset(sites) for storage, sites in readers.items()},
            dict(ComputingQueue.objects.values_list("name", "site_id")),
        )

    def at(self, storages: Collection[str]) -> frozenset[str]:
        """The sites that read one of these storage endpoints."""
        return frozenset().union(*(self.readers.get(storage, frozenset()) for storage in storages))

    def named(self, names: Sequence[str]) -> frozenset[str]:
        """The sites that these names mean, `*` for any text: those of sites, or of queues."""
        found = {site for name in names for site in self.sites if fnmatchcase(site, name)}
        found |= {site for name in names for queue, site in self.site_of_queue.items() if fnmatchcase(queue, name)}
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class TaskWishes:
    """What a task says of the sites of its elements: its lists, and where the data are that all of them read."""

    included: frozenset[str]
    excluded: frozenset[str]
    parents: Mapping[str, frozenset[str]]
    pileup: Mapping[str, frozenset[str]]
    trusts_sites: bool
    trusts_pileup: bool

    def sites(self, grid: GridPlaces, dataset: str, storages: Sequence[str], *, reads_input: bool) -> frozenset[str]:
        """Sites for files of this input that lie at these storage endpoints."""
        return possible_sites(
            SiteWishes(
                included=self.included,
                excluded=self.excluded,
                inputs={dataset: grid.at(storages)} if reads_input else {},
                parents=self.parents,
                pileup=self.pileup,
                needs_parents=bool(self.parents),
                trusts_sites=self.trusts_sites,
                trusts_pileup_sites=self.trusts_pileup,
            )
        )


def task_wishes(task: Task, grid: GridPlaces) -> TaskWishes:
    """What the parameters of the task and its further inputs say."""
    params = task.params.task_params
    included, excluded = _listed(params.get("includedSite")), _listed(params.get("excludedSite"))
    further = Dataset.objects.filter(task_id=task.id, type="input", excluded=False, master__isnull=False)
    parents: dict[str, frozenset[str]] = {}
    pileup: dict[str, frozenset[str]] = {}
    for dataset in further:
        attributes = read_attributes(dataset.attributes)
        if not (attributes.pileup or attributes.parent_data):
            continue
        key = dataset_key(task.vo, dataset.dataset_name, dataset.data_vo)
        copies = catalogue().replicas([key]).get(key, ())
        whole = [copy.storage for copy in copies if copy.files >= dataset.n_files]
        (pileup if attributes.pileup else parents)[dataset.dataset_name] = grid.at(whole)
    return TaskWishes(
        included=grid.named(included) if included else grid.sites,
        excluded=grid.named(excluded),
        parents=parents,
        pileup=pileup,
        trusts_sites=bool(params.get("trustSitelists")),
        trusts_pileup=bool(params.get("trustPUSitelists")),
    )


def _listed(value: object) -> list[str]:
    """Names in a list, or in a text with commas."""
    names = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return [str(name).strip() for name in names if str(name).strip()]

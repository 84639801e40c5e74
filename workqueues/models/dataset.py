"""Datasets of a task and the templates of its output names: JEDI_Datasets, JEDI_Output_Template of seed 001."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from workqueues.models.task import Task
from workqueues.states import INPUT_DATASET, OUTPUT_DATASET

STATUSES = tuple(dict.fromkeys(INPUT_DATASET.states + OUTPUT_DATASET.states))

COUNTERS = (
    "n_files", "n_files_to_be_used", "n_files_used", "n_files_finished", "n_files_failed", "n_files_on_hold", "n_files_missing",
    "n_files_waiting",
)  # fmt: skip


def _n(help_text: str) -> models.IntegerField[int, int]:
    return models.IntegerField(default=0, db_default=0, help_text=help_text)


class Dataset(models.Model):
    """One (task, dataset, type): an input that a task reads or an output that it writes."""

    id = models.BigAutoField(primary_key=True, help_text="dataset identifier (DATASETID)")
    task = models.ForeignKey(Task, models.CASCADE, db_index=False, related_name="datasets")
    dataset_name = models.CharField(max_length=255, help_text="name in the catalogue")
    container_name = models.CharField(max_length=255, blank=True, default="", help_text="container the dataset belongs to")
    type = models.CharField(max_length=20, help_text="input, pseudo_input, random_seed, output, log, ...")
    stream_name = models.CharField(max_length=64, blank=True, default="", help_text="placeholder in the job parameters")
    attributes = models.CharField(
        max_length=200, blank=True, default="", help_text="how it is split: repeat, nosplit, ratio=2, ..."
    )
    master = models.ForeignKey(
        "self",
        models.CASCADE,
        null=True,
        blank=True,
        db_index=False,
        related_name="+",
        help_text="master of a secondary dataset (MASTERID)",
    )
    provenance = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,
        related_name="+",
        help_text="input an output belongs to (PROVENANCEID)",
    )
    template_id = models.BigIntegerField(null=True, blank=True, help_text="template dataset it inherits from")
    vo = models.CharField(max_length=32, blank=True, default="")
    data_vo = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        help_text="VO that has an input in the catalogue, and the scope of its name here; empty: the task's own",
    )
    cloud = models.CharField(max_length=16, blank=True, default="", help_text="cloud whose replica is used")
    site = models.CharField(max_length=60, blank=True, default="", help_text="site whose replica is used")
    storage_token = models.CharField(max_length=100, blank=True, default="", help_text="storage token of inputs or outputs")
    destination = models.CharField(max_length=60, blank=True, default="", help_text="final destination of the outputs")
    collected_at = models.CharField(
        max_length=60,
        blank=True,
        default="",
        db_default="",
        help_text="storage endpoint to which outputs of jobs are brought while the task runs; empty: they stay",
    )
    also_at = ArrayField(
        models.CharField(max_length=60), default=list, db_default=[], blank=True,
        help_text="further storage endpoints to which they are brought: those of a token that names several"
    )  # fmt: skip

    status = models.CharField(max_length=20, choices=[(s, s) for s in STATUSES], help_text="how the task uses it")
    status_since = models.DateTimeField(db_default=Now())
    epoch = models.IntegerField(default=0, db_default=0, help_text="number of moves so far; fences concurrent writers")
    state = models.CharField(
        max_length=20,
        blank=True,
        default="",
        help_text="state in the catalogue: open, closed, missing; mutable: open, and read again",
    )
    state_check_time = models.DateTimeField(null=True, blank=True, help_text="when state was read from the catalogue")
    state_check_expiration = models.DateTimeField(null=True, blank=True, help_text="when it is read again; null: it is not")
    excluded = models.BooleanField(default=False, db_default=False, help_text="no longer an input of the task")
    creation_time = models.DateTimeField(db_default=Now())
    modification_time = models.DateTimeField(db_default=Now())
    frozen_time = models.DateTimeField(null=True, blank=True)
    locked_by = models.CharField(max_length=56, blank=True, default="", help_text="agent run that holds the claim")
    locked_time = models.DateTimeField(null=True, blank=True, help_text="when the claim ends")

    n_files = _n("files in the dataset, lost ones included; of an output those that are made or being made")
    n_files_wanted = models.IntegerField(null=True, blank=True, help_text="files the task asked for; null: all")
    n_files_to_be_used = _n("files that may be used")
    n_files_used = _n("files in jobs, finished or failed")
    n_files_finished = _n("files finished")
    n_files_failed = _n("files given up")
    n_files_on_hold = _n("files of jobs whose outputs travel")
    n_files_missing = _n("files lost or absent")
    n_files_waiting = _n("files waiting for real co-jumbo jobs")
    n_events = models.BigIntegerField(null=True, blank=True, help_text="events in the dataset")
    n_events_to_be_used = models.BigIntegerField(null=True, blank=True)
    n_events_used = models.BigIntegerField(null=True, blank=True, help_text="events of finished files and of done ranges")
    next_use = models.BigIntegerField(
        default=0, db_default=0, help_text="files of an untracked secondary dataset that were dealt out to jobs so far"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="dataset_counts_not_negative",
                condition=Q(**{f"{name}__gte": 0 for name in COUNTERS}),
            ),
            models.UniqueConstraint(
                fields=["template_id", "site"], name="dataset_concrete_once", condition=Q(template_id__isnull=False)
            ),
        ]
        indexes = [
            models.Index(fields=["task", "type"], name="dataset_of_task"),
            models.Index(fields=["dataset_name", "type", "task"], name="dataset_by_name"),
            models.Index(fields=["container_name", "type"], name="dataset_by_container", condition=~Q(container_name="")),
            models.Index(
                fields=["state_check_time"], name="dataset_check_due", condition=Q(state_check_expiration__isnull=False)
            ),
            models.Index(fields=["locked_time"], name="dataset_locked", condition=~Q(locked_by="")),
            models.Index(fields=["vo", "-id"], name="dataset_list_by_vo"),
            models.Index(
                fields=["task", "status", "type"],
                name="dataset_to_process",
                condition=Q(n_files_to_be_used__gt=F("n_files_used")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.dataset_name}"


class OutputTemplate(models.Model):
    """How the output names of a dataset are made (JEDI_Output_Template)."""

    id = models.BigAutoField(primary_key=True, help_text="template identifier (OUTTEMPID)")
    task = models.ForeignKey(Task, models.CASCADE, related_name="+")
    dataset = models.ForeignKey(Dataset, models.CASCADE, related_name="templates")
    filename_template = models.CharField(max_length=256, help_text="file name with ${SN}")
    source_name = models.CharField(max_length=256, blank=True, default="", help_text="name the payload writes, if it is renamed")
    serial_nr = models.IntegerField(default=0, db_default=0, help_text="last serial number used")
    max_serial_nr = models.IntegerField(null=True, blank=True, help_text="largest serial number that may be used")
    stream_name = models.CharField(max_length=64, blank=True, default="", help_text="placeholder in the job parameters")
    out_type = models.CharField(max_length=20, blank=True, default="", help_text="type of the files: output, log")
    optional = models.BooleanField(default=False, db_default=False, help_text="a job may leave the file out")

    def __str__(self) -> str:
        return self.filename_template

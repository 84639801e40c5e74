"""What is shown of jobs, decisions and the grid: each field named here, none by default (S20)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from broker_site.foundation.kernel import clock
from brokerage.models import (
    ComputingQueue,
    Decision,
    Feed,
    Job,
    JobChange,
    JobResult,
    JobSpec,
    LocalOverride,
    QueueStorage,
    Site,
    StorageEndpoint,
)
from brokerage.queries.command_lines import command_line
from brokerage.queries.feeds import state_of
from brokerage.queries.idle_slots import IdleAtQueue, IdleInHour
from brokerage.queries.open_places import MOST_OPEN
from brokerage.rules.facts.job_kind import KIND_NAMES
from brokerage.rules.grid.attributes import QUEUE, SITE, STORAGE
from workqueues.api.serializers import FileShown
from workqueues.rules.task.automatic_steps import of_job

JOB_LIST = (
    "id", "task_id", "job_name", "vo", "user_name", "prod_source_label", "processing_type", "kind", "status", "sub_status",
    "status_since", "ended_at", "computing_queue", "resource_type", "core_count", "priority", "attempt_nr", "epoch",
    "lease_until", "last_seen", "kill_requested", "kill_why", "created_at",
)  # fmt: skip


class JobShown(serializers.ModelSerializer[Job]):
    """A job as lists show it."""

    computing_queue = serializers.CharField(
        source="computing_queue.name", read_only=True, allow_null=True, help_text="null: it is open to several"
    )
    kind = serializers.ChoiceField(choices=KIND_NAMES, source="get_kind_display", read_only=True)
    job_name = serializers.CharField(source="spec.job_name", read_only=True)
    vo = serializers.CharField(source="spec.vo", read_only=True)
    user_name = serializers.CharField(source="spec.user_name", read_only=True)
    prod_source_label = serializers.CharField(source="spec.prod_source_label", read_only=True)
    processing_type = serializers.CharField(source="spec.processing_type", read_only=True)
    created_at = serializers.DateTimeField(source="spec.created_at", read_only=True)

    class Meta:
        model = Job
        fields = JOB_LIST
        read_only_fields = fields


class SpecShown(serializers.ModelSerializer[JobSpec]):
    """What a job is."""

    job_parameters = serializers.SerializerMethodField()
    storage = serializers.CharField(
        source="job.storage", read_only=True, help_text="where its outputs go; empty while it is open"
    )

    def get_job_parameters(self, spec: JobSpec) -> str:
        return command_line(spec)

    class Meta:
        model = JobSpec
        fields = (
            "working_group", "transformation", "software_release", "job_parameters", "ram_mb", "disk_mb", "walltime_s",
            "n_input_files", "input_bytes", "n_events", "nucleus", "storage", "decision_id",
        )  # fmt: skip
        read_only_fields = fields


class ResultShown(serializers.ModelSerializer[JobResult]):
    """How a job ended."""

    class Meta:
        model = JobResult
        fields = (
            "reported_status", "pilot_id", "host", "start_time", "end_time", "exit_code", "error_code", "error_message",
            "metrics", "samples", "metadata", "notes", "retry_actions",
        )  # fmt: skip
        read_only_fields = fields


class JobMove(serializers.ModelSerializer[JobChange]):
    """One move of a job."""

    rule = serializers.SerializerMethodField(help_text="by which rule the system made it; empty: the usual way, or somebody did")
    keys = serializers.SerializerMethodField(help_text="configuration keys that the rule depends on")

    def get_rule(self, move: JobChange) -> str:
        return step.rule if (step := of_job(move.old, move.new, move.who, move.why)) else ""

    def get_keys(self, move: JobChange) -> list[str]:
        return list(step.keys) if (step := of_job(move.old, move.new, move.who, move.why)) else []

    class Meta:
        model = JobChange
        fields = ("at", "old", "new", "epoch", "who", "why", "rule", "keys")
        read_only_fields = fields


class InputShown(serializers.Serializer[Mapping[str, Any]]):
    """One input of a job."""

    file_id = serializers.IntegerField()
    lfn = serializers.CharField()
    dataset_id = serializers.IntegerField()
    dataset_name = serializers.CharField()
    type = serializers.CharField(help_text="input, pseudo_input, random_seed; of a merge job trn_output, trn_log")
    tracked = serializers.BooleanField(help_text="counts for the limit of one use")
    attempt_nr = serializers.IntegerField(help_text="tries that the file, or the events, had before this job")
    use = serializers.CharField(help_text="live, used or returned")
    event_range_id = serializers.IntegerField(allow_null=True, help_text="range of events that the job has; null: the whole file")
    first_event = serializers.IntegerField(allow_null=True, help_text="first event of the range, counted from 0 in the file")
    last_event = serializers.IntegerField(allow_null=True, help_text="last event of the range, itself part of it")


class JobWhole(JobShown):
    """A job with its description, inputs, outputs, result, history and the jobs it was retried from and by."""

    spec = SpecShown(read_only=True)
    open_to = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="computing queues that may run it while it has none of its own"
    )
    inputs = InputShown(many=True, read_only=True, source="job_inputs")
    outputs = FileShown(many=True, read_only=True)
    result = ResultShown(read_only=True, allow_null=True)
    history = JobMove(many=True, read_only=True)
    retry_of = serializers.ListField(
        child=serializers.IntegerField(), read_only=True, help_text="jobs whose inputs it tries again"
    )
    retried_by = serializers.ListField(
        child=serializers.IntegerField(), read_only=True, help_text="jobs that try its inputs again"
    )
    merges = serializers.ListField(child=serializers.IntegerField(), read_only=True, help_text="jobs whose outputs it merges")
    merged_by = serializers.ListField(
        child=serializers.IntegerField(), read_only=True, help_text="jobs made to merge its outputs, the last one after all tries"
    )

    class Meta:
        model = Job
        fields = (
            *JOB_LIST, "open_to", "spec", "inputs", "outputs", "result", "history", "retry_of", "retried_by", "merges",
            "merged_by",
        )  # fmt: skip
        read_only_fields = fields


class DecisionShown(serializers.ModelSerializer[Decision]):
    """A decision as lists show it."""

    class Meta:
        model = Decision
        fields = (
            "id", "task_id", "policy", "policy_version", "outcome", "n_candidates", "n_chosen", "n_times", "first_at", "last_at",
            "config_revision", "seed",
        )  # fmt: skip
        read_only_fields = fields


class DecisionWhole(DecisionShown):
    """A decision with what it was asked and the story of it."""

    explanation = serializers.DictField(
        read_only=True,
        allow_null=True,
        help_text="verdict, funnel, chosen with weights and factors, skipped with reasons, matrix",
    )
    why_not = serializers.ListField(
        child=serializers.DictField(),
        read_only=True,
        allow_null=True,
        help_text="every verdict on the candidate named by `queue`, or on each part of that unified queue; null without it",
    )

    class Meta:
        model = Decision
        fields = (*DecisionShown.Meta.fields, "ask", "config", "explanation", "why_not")
        read_only_fields = fields


class StorageOfQueue(serializers.ModelSerializer[QueueStorage]):
    """A storage endpoint that a queue reads or writes."""

    storage = serializers.CharField(source="storage_id", read_only=True)

    class Meta:
        model = QueueStorage
        fields = ("access", "position", "storage")
        read_only_fields = fields


class OverrideShown(serializers.ModelSerializer[LocalOverride]):
    """What an operator set by hand over the document or feed."""

    class Meta:
        model = LocalOverride
        fields = ("attribute", "value", "beneath", "reason", "who", "since", "until")
        read_only_fields = fields


class IdleHourShown(serializers.Serializer[IdleInHour]):
    """Seconds of idle slots in one hour."""

    hour = serializers.DateTimeField(help_text="its beginning")
    idle_s = serializers.FloatField(help_text="seconds of idle slots, whatever work was there")
    beside_s = serializers.FloatField(help_text="those beside eligible work")
    held_s = serializers.FloatField(help_text="those beside work that a share, the throttler or a cap holds")


class IdleShown(serializers.Serializer[IdleAtQueue]):
    """Slots that asked in vain: now, and by hour of the last day."""

    idle = serializers.IntegerField(help_text="idle slots now")
    beside = serializers.IntegerField(help_text="those beside eligible work")
    held = serializers.IntegerField(help_text="those beside work that a share, the throttler or a cap holds")
    longest_s = serializers.FloatField(help_text="how long one of them has stood beside eligible work, s")
    why = serializers.CharField(help_text="what the eligible work waits for; empty: there is none")
    why_held = serializers.CharField(help_text="what holds the other work; empty: there is none")
    hours = IdleHourShown(many=True, help_text="hours in which slots idled, the last first")


class QueueShown(serializers.ModelSerializer[ComputingQueue]):
    """A computing queue with its storage endpoints and its jobs by state."""

    site = serializers.CharField(source="site_id", read_only=True)
    storages = StorageOfQueue(many=True, read_only=True)
    jobs = serializers.SerializerMethodField(
        help_text="number of live jobs that have this queue, by state; sent counts as starting"
    )
    open_jobs = serializers.SerializerMethodField(
        help_text=f"jobs that wait and are open to this queue and others; each counts at all of them. Counted up to {MOST_OPEN}"
    )
    overrides = serializers.SerializerMethodField(help_text="attributes that operators set by hand, with what they hide")

    idle = serializers.SerializerMethodField(help_text="idle slots, and what they idle beside")

    class Meta:
        model = ComputingQueue
        fields = (
            "id", "name", "site", *QUEUE, "attributes", "last_start", "modified_at", "storages", "jobs", "open_jobs", "idle",
            "overrides", "source", "good_at", "fault", "fault_since", "gone_at",
        )  # fmt: skip
        read_only_fields = fields
        extra_kwargs = {"last_start": {"help_text": "when a job last began there; noted once a minute at most"}}

    def get_jobs(self, queue: ComputingQueue) -> dict[str, int]:
        """The counts that the view read for all queues at once."""
        counts: Mapping[int, dict[str, int]] = self.context.get("job_counts", {})
        return counts.get(queue.id, {})

    def get_open_jobs(self, queue: ComputingQueue) -> int:
        """That which the view read for all queues at once."""
        counts: Mapping[int, int] = self.context.get("open_jobs", {})
        return counts.get(queue.id, 0)

    @extend_schema_field(IdleShown())
    def get_idle(self, queue: ComputingQueue) -> dict[str, Any]:
        """That which the view read for all queues at once."""
        idle: Mapping[int, IdleAtQueue] = self.context.get("idle", {})
        return dict(IdleShown(idle.get(queue.id, IdleAtQueue())).data)

    @extend_schema_field(OverrideShown(many=True))
    def get_overrides(self, queue: ComputingQueue) -> list[Any]:
        """Those that the view read for all queues at once."""
        overrides: Mapping[str, list[LocalOverride]] = self.context.get("overrides", {})
        return list(OverrideShown(overrides.get(queue.name, []), many=True).data)


class StorageShown(serializers.ModelSerializer[StorageEndpoint]):
    """A storage endpoint; where it lies on disk is for pilots."""

    class Meta:
        model = StorageEndpoint
        fields = (
            "name", *(name for name in STORAGE if name not in ("site", "path")), "attributes", "source", "fault", "gone_at",
            "root_state", "root_since",
        )  # fmt: skip
        read_only_fields = fields


class SiteShown(serializers.ModelSerializer[Site]):
    """A site with its storage endpoints and queues."""

    storages = StorageShown(many=True, read_only=True)
    queues: serializers.RelatedField = serializers.SlugRelatedField("name", many=True, read_only=True)

    class Meta:
        model = Site
        fields = ("name", *SITE, "attributes", "source", "fault", "gone_at", "storages", "queues")
        read_only_fields = fields


class FeedShown(serializers.ModelSerializer[Feed]):
    """A feed and how it is doing; where it is read from is for operators."""

    state = serializers.SerializerMethodField(help_text="fresh, old, or too old: then production and analysis wait")
    age_s = serializers.SerializerMethodField(help_text="how old what it says is, s")
    told = serializers.SerializerMethodField(help_text="the same in one sentence")

    class Meta:
        model = Feed
        fields = (
            "name", "kind", "enabled", "state", "age_s", "told", "good_at", "data_at", "tried_at", "entries", "fault",
            "fault_since", "faulty",
        )  # fmt: skip
        read_only_fields = fields

    def get_state(self, feed: Feed) -> str:
        """Whether its age allows decisions."""
        return state_of(feed, clock.now()).state

    def get_age_s(self, feed: Feed) -> float:
        """Seconds."""
        return round(state_of(feed, clock.now()).age_s, 1)

    def get_told(self, feed: Feed) -> str:
        """A sentence for people."""
        return state_of(feed, clock.now()).sentence

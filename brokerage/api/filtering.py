"""What the lists of supply can be filtered by, on pages, in JSON, CSV and REST; and what is known here of tasks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.gdpconfig.changesets import SOURCES
from broker_site.foundation.gdpconfig.models import Change
from broker_site.foundation.gdpconfig.proposals import OUTCOMES
from broker_site.foundation.gdpconfig.visible_lines import seen_lines
from broker_site.foundation.kernel.filter_words import Bounds, Wanted, Word
from broker_site.foundation.rest.filtering import (
    AgeFilter,
    AnyOf,
    FlagFilter,
    IdFilter,
    ListFilter,
    NameFilter,
    NumberFilter,
    TimeFilter,
    is_named,
    last_hours,
    pattern,
)  # fmt: skip
from broker_site.foundation.rest.keyset import LARGEST_ID
from brokerage.models import ComputingQueue, ErrorFingerprint, Job, TaskWait, TransferWish
from brokerage.queries.open_places import open_to
from brokerage.rules.facts.job_kind import KIND_NAMES, JobKind
from brokerage.rules.grid.attributes import QUEUE_STATUSES, QUEUE_TYPES
from brokerage.rules.transfers.reasons import REASONS
from brokerage.rules.transfers.wishes import ACTIVITIES
from brokerage.states import JOB, TRANSFER
from workqueues.api.filtering import PRIORITIES, WILD, DatasetFilter, ElementFilter, FileFilter, TaskFilter, of_tasks
from workqueues.models import TaskThrottle

READ_CONFIG = "config:read"
ERROR = "number of the error, as the list of errors has it"
SIGNED = {"least": -LARGEST_ID - 1, "most": LARGEST_ID}


class _JobStates(AnyOf):
    def filter(self, qs: QuerySet[Any], value: Wanted[str] | None) -> QuerySet[Any]:
        """Where no final state is wanted, the small index of jobs that have not ended can serve."""
        chosen = super().filter(qs, value)
        wanted = value is not None and value.any_of
        return chosen.filter(ended_at=None) if wanted and not JOB.final & set(wanted) else chosen


class JobFilter(ListFilter):
    in_order = frozenset({"vo"})
    aliases = {
        "task_id": "task", "computing_queue": "queue", "computingsite": "queue", "user": "user_name", "type": "kind",
        "gshare": "share", "created": "created_at", "jeditaskid": "task", "pandaid": "id",
        "hours": "status_since",
    }  # fmt: skip
    reworded = {"hours": last_hours}

    status = _JobStates(JOB.states, label="Status")
    task = IdFilter(label="Task", field_name="task_id", narrow=True, help_text="number of the task")
    queue = NameFilter(
        label="At queue",
        field_name="computing_queue__name",
        help_text=f"computing queue that the job has; {WILD}. One that is open to several has none: see open_to",
    )
    open_to = NameFilter(
        label="Open to queue",
        condition=open_to,
        help_text=f"computing queue to which the job is open, until a pilot takes it; {WILD}",
    )
    share = NameFilter(label="Share", condition=of_tasks("gshare"), help_text="share of the task")
    user_name = NameFilter(label="Owner", condition=of_tasks("user_name"), help_text=f"owner of the task; {WILD}")
    kind = AnyOf(KIND_NAMES, label="Kind", coerce=JobKind.named)
    age = AgeFilter(label="Age", field_name="spec__created_at", help_text="time since it was made")
    why = NameFilter(
        label="Why",
        condition=lambda text, using: is_named("sub_status", text) & Q(ended_at=None),
        help_text=f"why a job that has not ended waits, in one word, as its sub-status has it; {WILD}",
    )
    error = NumberFilter(label="Error", field_name="result__fingerprint", **SIGNED, help_text=ERROR)
    error_code = NameFilter(label="Error code", field_name="result__error_code", help_text="error with which the job ended")
    vo = NameFilter(label="VO", field_name="spec__vo")
    id = IdFilter(label="Number", narrow=True, help_text="number of the job")
    prod_source_label = NameFilter(label="Label", field_name="spec__prod_source_label")
    processing_type = NameFilter(label="Processing", field_name="spec__processing_type")
    sub_status = NameFilter(label="Sub-status")
    resource_type = NameFilter(label="Resource type")
    core_count = NumberFilter(label="Cores", most=32_767)
    priority = NumberFilter(label="Priority", least=PRIORITIES[0], most=PRIORITIES[1])
    attempt_nr = NumberFilter(label="Attempt", most=32_767)
    ended = FlagFilter(label="Ended", holds=Q(ended_at__isnull=False), help_text="true: in a final state; false: alive")
    created_at = TimeFilter(label="Made", field_name="spec__created_at", help_text="when it was made")
    status_since = TimeFilter(label="Status since", help_text="when it entered its status")
    ended_at = TimeFilter(label="Ended at", help_text="when it ended")


class DecisionFilter(ListFilter):
    policy = NameFilter()
    outcome = AnyOf(("assign", "pending"))


class QueueFilter(ListFilter):
    aliases = {"site_id": "site", "queue": "name"}

    status = AnyOf(QUEUE_STATUSES, label="Status")
    name = NameFilter(label="Name", help_text=f"name; {WILD}")
    site = NameFilter(label="Site", field_name="site__name", help_text=f"site; {WILD}")
    type = AnyOf(QUEUE_TYPES, label="Type")
    corecount = NumberFilter(label="Cores", most=1 << 31, help_text="cores of a slot; 0: any number")
    maxrss = NumberFilter(label="Memory", most=1 << 31, help_text="MB of a slot; 0: no limit")
    maxwdir = NumberFilter(label="Disk", most=1 << 31, help_text="MB of a slot; 0: no limit")
    maxtime = NumberFilter(label="Longest job", most=1 << 31, help_text="s; 0: no limit")
    last_start = TimeFilter(label="Last start", help_text="when a job last started there, to a minute")


PILOT_STATES = ("busy", "idle", "quiet", "gone")
SEEN_MIN = 10
"""Minutes within which a pilot was heard of that is not gone."""


def pilot_state(state: str, using: str) -> Q:
    """Pilots in a state: with a job; asking in vain; heard of lately with neither; none of these."""
    busy = Q(Exists(Job.objects.using(using).filter(lease_holder=OuterRef("id"))))
    idle = Q(idle_slot__until__gt=Now())
    quiet = Q(last_seen__gt=Now() - timedelta(minutes=SEEN_MIN))
    return {"busy": busy, "idle": idle & ~busy, "quiet": quiet & ~idle & ~busy, "gone": ~quiet & ~idle & ~busy}[state]


class PilotFilter(ListFilter):
    aliases = {"queue_name": "queue", "status": "state", "registered": "registered_at"}

    state = AnyOf(PILOT_STATES, label="State", condition=pilot_state)
    queue = NameFilter(label="Queue", field_name="queue__name", help_text=f"computing queue; {WILD}")
    site = NameFilter(label="Site", field_name="queue__site__name", help_text=f"site; {WILD}")
    host = NameFilter(label="Host", help_text=f"machine that it runs on; {WILD}")
    slot = NameFilter(label="Slot", help_text=f"name of its slot there; {WILD}")
    core_count = NumberFilter(label="Cores", most=32_767)
    memory_mb = NumberFilter(label="Memory", most=(1 << 31) - 1, help_text="MB; 0: not told")
    registered_at = TimeFilter(label="Registered", help_text="when it registered")
    last_seen = TimeFilter(label="Last contact", help_text="when it was last heard of, to about a minute")


class SiteFilter(ListFilter):
    name = NameFilter(help_text=f"name; {WILD}")
    state = NameFilter()
    nucleus = FlagFilter()


def _wished(column: str) -> Any:
    """Transfers that a task or a job waits for."""

    def condition(bounds: Bounds[int], using: str) -> Q:
        asked = {f"{column}__{comparison}": number for comparison, number in bounds}
        return Q(id__in=TransferWish.objects.using(using).filter(closed_at=None, **asked).values("transfer_id"))

    return condition


class TransferFilter(ListFilter):
    in_order = frozenset({"vo"})
    aliases = {
        "task_id": "task", "job_id": "job", "storage": "destination", "file": "lfn", "why": "reason", "type": "activity",
        "created": "created_at",
    }  # fmt: skip

    status = AnyOf(TRANSFER.states, label="Status")
    lfn = NameFilter(label="File", field_name="file__lfn", help_text=f"name of the file; {WILD}")
    source_site = NameFilter(label="From site", help_text=f"site; {WILD}")
    destination_site = NameFilter(label="To site", help_text=f"site; {WILD}")
    destination = NameFilter(label="To storage", help_text=f"storage endpoint; {WILD}")
    reason = AnyOf(REASONS, label="Why")
    task = IdFilter(label="Task", condition=_wished("task_id"), narrow=True, help_text="number of a task that waits for them")
    age = AgeFilter(label="Age", field_name="created_at")
    share = NameFilter(label="Share")
    vo = NameFilter(label="VO")
    activity = AnyOf(ACTIVITIES, label="Activity")
    source = NameFilter(label="From storage", help_text=f"storage endpoint; {WILD}")
    dataset = NameFilter(label="Dataset", field_name="file__dataset__name", help_text=f"name of its dataset; {WILD}")
    job = IdFilter(label="Job", condition=_wished("job_id"), narrow=True, help_text="number of a job that waits for them")
    ended = FlagFilter(label="Ended", holds=Q(ended_at__isnull=False), help_text="true: in a final state; false: open")
    bytes = NumberFilter(label="Size", help_text="bytes")
    attempt = NumberFilter(label="Attempts", most=32_767)
    priority = NumberFilter(label="Priority", least=PRIORITIES[0], most=PRIORITIES[1])
    created_at = TimeFilter(label="Asked for", help_text="when it was asked for")
    status_since = TimeFilter(label="Status since", help_text="when it entered its status")


def _told(column: str) -> Any:
    """Counts of errors that say so."""

    def condition(text: str, using: str) -> Q:
        return Q(fingerprint__in=ErrorFingerprint.objects.using(using).filter(is_named(column, text)).values("id"))

    return condition


class ErrorFilter(ListFilter):
    """Errors of jobs, by what they are, where they were and whose jobs these were."""

    aliases = {"id": "error", "computing_queue": "queue", "error_code": "code", "name": "message", "user": "user_name"}

    code = NameFilter(label="Code", condition=_told("code"), help_text=f"code of the error; {WILD}")
    message = NameFilter(label="Message", condition=_told("message"), help_text="its message, where * stands for what differs")
    component = NameFilter(label="Said by", condition=_told("component"), help_text="pilot or broker")
    queue = NameFilter(label="Queue", help_text=f"computing queue where the job was; {WILD}")
    user_name = NameFilter(label="Owner", help_text=f"owner of its task, not together with a queue; {WILD}")
    vo = NameFilter(label="VO")
    error = NumberFilter(label="Number", field_name="fingerprint", **SIGNED, help_text=ERROR)


class _LineFilter(NameFilter):
    """Sets of changes that have such a line, of those that the caller sees."""

    def compared(self, part: Word) -> Q:
        lines = Change.objects.filter(is_named(str(self.field_name), pattern(part)), change_set=OuterRef("pk"))
        request = self.parent.request
        if request is not None:
            caller = authenticate(getattr(request, "_request", request))
            lines = lines.filter(seen_lines(visible_vos(caller, READ_CONFIG)))
        return Q(Exists(lines))


class ChangeSetFilter(ListFilter):
    """Sets of changes of the configuration, by what they changed and who made them."""

    aliases = {"key": "name", "user": "who", "user_name": "who"}

    name = _LineFilter(label="Key", help_text=f"sets that changed the key of this name; {WILD}")
    component = _LineFilter(label="Component", help_text="sets that changed a key of this component")
    kind = _LineFilter(label="Kind", help_text="config, share or work_queue: sets with such a line")
    who = NameFilter(label="By", help_text="author")
    source = AnyOf(SOURCES, label="Way")
    age = AgeFilter(label="Age", field_name="at")


class ProposalFilter(ListFilter):
    """Proposed changes, by who proposed them and what became of them."""

    aliases = {"user": "who", "user_name": "who"}

    open = FlagFilter(
        label="Waits", holds=Q(outcome="", expires_at__gt=Now()), help_text="true: waits for somebody; false: decided, or over"
    )
    outcome = AnyOf(OUTCOMES, label="Outcome")
    who = NameFilter(label="By", help_text="author")


def tasks_at_queue(text: str, using: str) -> Q:
    """Tasks with a job at such a queue that has not ended."""
    queues = ComputingQueue.objects.using(using).filter(is_named("name", text))
    return Q(id__in=Job.objects.using(using).filter(ended_at=None, computing_queue__in=queues.values("id")).values("task_id"))


def tasks_with_error(bounds: Bounds[int], using: str) -> Q:
    """Tasks of which a job ended with such an error."""
    asked = {f"result__fingerprint__{comparison}": number for comparison, number in bounds}
    return Q(Exists(Job.objects.using(using).filter(task_id=OuterRef("id"), ended_at__isnull=False, **asked)))


def tasks_that_wait_for(text: str, using: str) -> Q:
    """Tasks that wait, with this cause of throttling, this criterion that no queue passes, or such words in their reason."""
    throttled = TaskThrottle.objects.using(using).filter(is_named("cause", text)).values("task_id")
    waits = TaskWait.objects.using(using).filter(group__criteria__contains=[str(text)]).values("task_id")
    said = is_named("error_dialog", text if text != text.strip("*?") else f"*{text}*")
    return Q(ended_at=None) & (Q(id__in=throttled) | Q(id__in=waits) | said)


def task_filters() -> dict[str, Any]:
    """Filters of the list of tasks by what this app knows of them."""
    return {
        "queue": NameFilter(
            label="At queue",
            condition=tasks_at_queue,
            help_text=f"computing queue where jobs of it are that have not ended; {WILD}",
        ),
        "why": NameFilter(
            label="Why",
            condition=tasks_that_wait_for,
            help_text="why a task that has not ended waits: a criterion, such as memory, a cause of throttling, such as user_cap,"
            " or words of its reason",
        ),
        "error": NumberFilter(label="Error", condition=tasks_with_error, **SIGNED, help_text=f"{ERROR}: a job of it ended so"),
    }


FILTERS: dict[str, type[ListFilter]] = {
    "tasks": TaskFilter, "jobs": JobFilter, "datasets": DatasetFilter, "files": FileFilter, "queues": QueueFilter,
    "transfers": TransferFilter, "changes": ChangeSetFilter, "errors": ErrorFilter, "pilots": PilotFilter,
    "elements": ElementFilter,
}  # fmt: skip
"""List of the pages -> what it can be filtered by."""

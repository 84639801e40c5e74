"""Task parameters that say who wants the task, what it is called, and which software it runs."""

from __future__ import annotations

from workqueues.rules.jobs.lengths import TASK
from workqueues.rules.task_parameters.parameter import Parameter


def _text(name: str, column: str, doc: str, required: bool = False, row: str = "", note: str = "") -> Parameter:
    return Parameter(name, "text", doc, row, required, length=TASK[column], column=column, note=note)


PARAMETERS = (
    # Who and what.
    _text("taskName", "task_name", "Name of the task.", required=True),
    _text("userName", "user_name", "Owner; the submitter when absent."),
    _text("vo", "vo", "Virtual organisation.", required=True),
    _text("prodSourceLabel", "prod_source_label", "Source label: managed, user, test, ...", required=True),
    _text("taskType", "task_type", "Type of the task: prod, anal, ...; anal when absent."),
    Parameter("taskPriority", "int", "Priority at submission; higher runs earlier.", default=0, column="task_priority"),
    Parameter("currentPriority", "int", "Priority now; that of the submission when absent.", column="current_priority"),
    _text("processingType", "processing_type", "Kind of processing: evgen, simul, pile, ...", required=True),
    _text("workingGroup", "working_group", "Group that owns the task."),
    _text("countryGroup", "country_group", "Country group of the user."),
    Parameter("official", "flag", "The task belongs to a group, not to a user.", row="J26"),
    Parameter("uniqueTaskName", "flag", "The owner may have one task of this name."),
    _text("parentTaskName", "task_name", "Task of the same user whose outputs this one reads."),
    Parameter("reqID", "int", "Number of the request; the task's id when absent.", column="req_id"),
    _text("campaign", "campaign", "Campaign to which the task belongs."),
    _text("ticketID", "ticket_id", "Ticket that follows the task."),
    _text("ticketSystemType", "ticket_system_type", "Which ticket system."),
    _text("requestType", "request_type", "Type of the request."),
    Parameter("framework", "text", "Framework of the payload; informative.", length=50),
    _text("gshare", "gshare", "Leaf of the share tree; without it the first leaf that matches the task."),
    Parameter("workQueueName", "text", "Work queue of the task; without it the first one whose criteria hold.", length=32),
    # Software.
    Parameter(
        "architecture",
        "text_or_object",
        "Software and hardware platform, as text or object.",
        length=TASK["architecture"],
        column="architecture",
    ),
    _text("transUses", "trans_uses", "Name of the software release."),
    _text("transHome", "trans_home", "Name of the software cache with the transformation."),
    _text("transPath", "trans_path", "The transformation: a path below the site's software area.", required=True),
    _text("container_name", "container_name", "Image in which the payload runs; our own pilot has none."),
    Parameter("sourceURL", "text", "Where the user's sources are.", row="J26"),
    Parameter("fixedSandbox", "text", "Archive of the sources, at resubmission.", row="J23"),
    Parameter("multiStepExec", "object", "Payload in several steps.", row="U5"),
    Parameter("osInfo", "text", "Operating system of the submitting host; informative.", length=200),
    # Only kept with the task.
    Parameter("cliParams", "text", "The command line that submitted the task; informative.", length=100_000),
    Parameter("noEmail", "flag", "No mail about the task."),
    Parameter("ttcrTimestamp", "text", "When the user hopes for the end, Y-m-d H:M:S.f; informative.", length=40),
)

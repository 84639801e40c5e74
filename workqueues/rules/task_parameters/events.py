"""Task parameters of event service, jumbo jobs and cloning; none of them works yet."""

from __future__ import annotations

from workqueues.rules.task_parameters.parameter import Parameter


def _flag(name: str, doc: str, code: str = "") -> Parameter:
    return Parameter(name, "flag", doc, row="J13", default=False, code=code)


def _number(name: str, doc: str, code: str = "", row: str = "J13") -> Parameter:
    return Parameter(name, "number", doc, row, code=code)


PARAMETERS = (
    _number("nEventsPerWorker", "Events a range; makes the task one of the event service.", "ES"),
    Parameter(
        "useJobCloning",
        "text",
        "The same work at several queues; the first that runs, or stores, wins.",
        row="J13",
        choices=("runonce", "storeonce"),
        code="UC",
    ),
    _flag("fineGrainedProc", "Books of events for any payload.", "FP"),
    _number("nEsConsumers", "Consumers a job set.", "EC"),
    _number("nSitesPerJob", "Queues a job set.", "NS"),
    _number("maxAttemptES", "Tries an event range.", "XA"),
    _number("maxAttemptEsJob", "Tries a consumer.", "XJ"),
    _flag("registerEsFiles", "Outputs of ranges are registered.", "RE"),
    _flag("mergeEsOnOS", "Outputs of ranges are merged at the object store.", "ME"),
    _flag("notDiscardEvents", "Ranges that are done stay done at a retry.", "ND"),
    _flag("decAttOnFailedES", "Only failures use up tries of a range.", "XF"),
    _flag("switchEStoNormal", "The last few events run as normal jobs.", "SE"),
    _flag("onSiteMerging", "Outputs of ranges are merged inside the job.", "OM"),
    _flag("usePrefetcher", "Ranges are read ahead.", "UT"),
    _flag("resurrectConsumers", "Dead consumers are made again.", "SC"),
    Parameter("esmergeSpec", "object", "How ranges are merged.", row="J13"),
    Parameter("objectStore", "text", "Where outputs of ranges are put.", row="J13"),
    _number("nEventsPerOutputFile", "Events an output file."),
    _number("esFraction", "Chance that the task becomes one of the event service."),
    _flag("esConvertible", "The task may become one of the event service."),
    _number("nJumboJobs", "Jumbo jobs of the task.", "NJ", "J14"),
    _number("maxJumboPerSite", "Jumbo jobs a queue.", "MJ", "J14"),
)

"""Task parameters about retries and the end of a task, merging, builds and pre-processing."""

from __future__ import annotations

from workqueues.rules.task_parameters.parameter import Parameter


def _flag(name: str, doc: str, row: str = "", code: str = "", note: str = "") -> Parameter:
    return Parameter(name, "flag", doc, row, default=False, code=code, note=note)


def _later(name: str, doc: str, row: str, code: str = "") -> Parameter:
    return Parameter(name, "number", doc, row, code=code)


PARAMETERS = (
    # Retries and endings.
    Parameter("maxAttempt", "int", "Tries a file, those that were closed or cancelled included.", default=3, low=1, high=999),
    Parameter("maxFailure", "int", "Failures a file; no limit when absent.", low=1, high=999),
    _flag("disableAutoRetry", "Each file is tried once.", code="DR"),
    _flag("disableReassign", "Jobs are never taken back from a queue by a time limit.", row="P8", code="DI"),
    _flag("allowPartialFinish", "A job may finish with inputs left over.", row="J13", code="AP"),
    _flag("useExhausted", "An incomplete end of a production task waits as exhausted.", code="UX"),
    Parameter("goal", "number", "Percent of events or files at which the task is good enough.", high=100, column="goal"),
    Parameter("termCondition", "text", "The goal in words, as in: 90% of files.", column="term_condition", length=100),
    _flag("failWhenGoalUnreached", "A task below its goal fails.", code="FG"),
    _flag("noAutoPause", "Failures never pause the task; nothing pauses tasks by itself.", code="NP"),
    _flag("workflowHoldup", "Waits while workflow steps feed its input.", row="J9", code="WH"),
    _flag("disableAutoFinish", "No end by time limit.", row="J24", code="DF"),
    _flag("noThrottle", "Never throttled for failures; tasks are not throttled yet."),
    Parameter("outputPostProcessing", "any", "What happens to outputs at the end.", row="J18"),
    # Merging.
    _flag("mergeOutput", "Outputs are merged by jobs of the task itself.", row="J8", code="MO"),
    Parameter("mergeSpec", "object", "How merge jobs run.", row="J8"),
    _flag("umNameAtEnd", "Names of unmerged datasets.", row="J8"),
    _later("nFilesPerMergeJob", "Files a merge job.", "J8", "ZF"),
    _later("nEventsPerMergeJob", "Events a merge job.", "J8", "ZE"),
    _later("nGBPerMergeJob", "GB a merge job.", "J8", "ZG"),
    _later("nMaxFilesPerMergeJob", "Most files a merge job.", "J8", "ZM"),
    # Builds, pre-processing, scouts.
    Parameter("buildSpec", "object", "A job that compiles the user's sources first.", row="J26", code="UB"),
    Parameter("preproSpec", "object", "A job whose result fills in parameters.", row="J26", code="UP"),
    _flag("hpoWorkflow", "Hyper-parameter optimisation.", row="J27", code="HO"),
    Parameter("hpoRequestData", "object", "Its request.", row="J27"),
    _flag(
        "skipScout", "No scout jobs.", code="US", note="accepted; scouts are not built yet (row J20), so every task runs without"
    ),
    _later("scoutSuccessRate", "Tenths of scouts that must succeed.", "J20", "SS"),
    _later("maxNumJobs", "Most jobs of an optimisation task.", "J27", "MN"),
    _later("totNumJobs", "Most jobs of the task.", "J27", "TJ"),
)

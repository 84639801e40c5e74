"""Every task parameter that PanDA knows, with what of it works today: the document that a submission sends.

Source: facts on task parameters 2.1 and the decisions (D10, D11, F3, F4). Each has the default that counts when it is not given;
zero, false, an empty text and nothing are no wish.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, PlainValidator

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import STRICT, Flag, found, problem
from workqueues.rules.jobs.lengths import FILE_NAME, TASK
from workqueues.rules.jobs.sandbox import LONGEST_ARCHIVE
from workqueues.rules.task_parameters.declaration import (
    Amount,
    Architecture,
    Count,
    Counts,
    Given,
    Names,
    Parameter,
    Percent,
    PostProcessing,
    ShortNames,
    TaskIds,
    Whole,
    flag,
    names,
    number,
    parameter,
    parameters,
    read,
    text,
)
from workqueues.rules.task_parameters.items import AnyItem, Log

JobParameters = Annotated[
    Any, PlainValidator(lambda value: value, json_schema_input_type=Annotated[list[AnyItem], Field(min_length=1)])
]
MergeLog = Annotated[Any, PlainValidator(lambda value: value, json_schema_input_type=Log)]
Logs = Annotated[Any, PlainValidator(lambda value: value, json_schema_input_type=Log | list[Log])]
"""Items are read one by one (`rules.refine.items`), so that a fault in one says nothing of the others."""

URL = r"[a-z][a-z0-9+.-]*://[A-Za-z0-9._~:/@%+,=-]+"
SIZE_UNIT = r"(bytes|B|kB|MB|GB)(PerEvent)?(Fixed)?"


class TaskParameters(BaseModel):
    """The parameters of a task, by PanDA's names."""

    model_config = STRICT

    # Who and what.
    taskName: Given = text("Name of the task.", "task_name", required=True)
    userName: str = text("Owner; the submitter when absent.", "user_name")
    vo: Given = text("Virtual organisation.", "vo", required=True)
    prodSourceLabel: Given = text("Source label: managed, user, test, ...", "prod_source_label", required=True)
    taskType: str = text("Type of the task: prod, anal, ...; anal when absent.", "task_type")
    taskPriority: Whole = number("Priority at submission; higher runs earlier.", column="task_priority")
    currentPriority: Count | None = parameter("Priority now; that of the submission when absent.", column="current_priority")
    processingType: Given = text("Kind of processing: evgen, simul, pile, ...", "processing_type", required=True)
    workingGroup: str = text("Group that owns the task.", "working_group")
    countryGroup: str = text("Country group of the user.", "country_group")
    official: Flag = flag("The task belongs to a group, not to a user.", row="J26")
    uniqueTaskName: Flag = flag("The owner may have one task of this name; an analysis that has ended is run again.")
    allowTaskDuplication: Flag = flag("Tasks of the same owner that say this too may write to the same datasets.")
    parentTaskName: str = text("Task of the same user whose outputs this one reads.", length=TASK["task_name"])
    reqID: Count | None = parameter("Number of the request; the task's id when absent.", column="req_id")
    campaign: str = text("Campaign to which the task belongs.", "campaign")
    ticketID: str = text("Ticket that follows the task.", "ticket_id")
    ticketSystemType: str = text("Which ticket system.", "ticket_system_type")
    requestType: str = text("Type of the request.", "request_type")
    framework: str = text("Framework of the payload; informative.", length=50)
    gshare: str = text("Leaf of the share tree; without it the first leaf that matches the task.", "gshare")
    workQueueName: str = text("Work queue of the task; without it the first one whose criteria hold.", length=32)

    # Software.
    architecture: Architecture = text("Software and hardware platform, as text or object.", "architecture")
    transUses: str = text("Name of the software release.", "trans_uses")
    transHome: str = text("Name of the software cache with the transformation.", "trans_home")
    transPath: Given = text("The transformation: a path below the site's software area.", "trans_path", required=True)
    container_name: str = text("Image in which the payload runs; our own pilot has none.", "container_name")
    sourceURL: str = text("Where the user's sources are: what ${SURL} stands for.", length=255, pattern=URL)
    fixedSandbox: str = text(
        "Archive of the user's sources, in place of that which follows -a in jobParameters and mergeSpec.",
        length=LONGEST_ARCHIVE,
        pattern=FILE_NAME,
    )
    multiStepExec: dict[str, Any] | None = parameter("Payload in several steps.", row="U5")
    osInfo: str = text("Operating system of the submitting host; informative.", length=200)

    # Only kept with the task.
    cliParams: str = text("The command line that submitted the task; informative.", length=100_000, lines=True)
    noEmail: Flag = flag("No mail about the task.")
    ttcrTimestamp: str = text("When the user hopes for the end, Y-m-d H:M:S.f; informative.", length=40)

    # What the task reads, and how it is cut into jobs.
    jobParameters: JobParameters = parameter("Items of the payload's command line, in order.", required=True)
    log: Logs = parameter("Item, or list of items, for the logs of the jobs.")
    log_merge: MergeLog = parameter("Item for the log of merge jobs; then they merge the logs of the others too.")
    noInput: Flag = flag("The task reads no dataset; numbered pseudo files stand for its jobs.")
    nFiles: Whole = number("How many files of the master dataset are used; without input: how many jobs.", low=1)
    nEvents: Whole = number("How many events of the master dataset are used; without input: events in all.", low=1, high=10**12)
    nFilesPerJob: Whole = number("Files a job.", low=1, high=10_000, code="NF")
    nEventsPerJob: Whole = number("Events a job.", low=1, code="NE")
    nEventsPerInputFile: Whole = number("Events in each input file, whatever the catalogue says.", low=1, code="EI")
    tgtNumEventsPerJob: Whole = number("About so many events a job, in even pieces of each file.", low=1, code="TE")
    nGBPerJob: Whole = number("Less than so many GB of input, output and work area a job; one file at least.", low=1, code="NG")
    nMaxFilesPerJob: Whole = number("Most files a job.", low=1, high=10_000, code="MF")
    maxEventsPerJob: Whole = number("Most events a job of joined pieces.", row="J13", code="MX")
    tgtMaxOutputForNG: Whole = number(
        "Wanted size of the largest output, GB: nGBPerJob is set by what scouts wrote.", low=1, high=100_000, code="TN"
    )
    minGranularity: Whole = number("Events a piece, joined into jobs for each queue.", row="J13", code="DY")
    nEventsPerRange: Whole = number("Events a piece, joined into jobs for each queue.", row="J13", code="DY")
    groupBoundaryID: Whole = number("How boundaries of files bind jobs and outputs: 1 to 4.", high=4, code="GB")
    maxWalltime: Whole = number("Wanted longest wall time of a job, hours.", low=1, high=10_000, code="MW")
    skipFilesUsedBy: TaskIds = parameter("Numbers of tasks: files, and numbers of a sequence, that they used are left out.", ())
    skipShortInput: Flag = flag(
        "Events behind the last whole nEventsPerJob of a file are left out, and files with fewer.", code="SI"
    )
    skipShortOutput: Flag = flag("Jobs with too few events or files are left out.", code="SH")
    respectLB: Flag = flag("A job keeps within one lumi block.", code="RL")
    releasePerLB: Flag = flag(
        "Files of an input that grows, or is staged, are used once their lumi block is complete.", code="RP"
    )
    orderByLB: Flag = flag("Files are used in the order of their lumi blocks.", code="OL")
    respectSplitRule: Flag = flag(
        "Scouts are cut as the task's other jobs; else one has a single file where the task does not say.", code="RR"
    )
    reuseSecOnDemand: Flag = flag("Secondary files are used again when there are too few.", code="RO")
    useRealNumEvents: Flag = flag(
        "Where the catalogue knows the events of a file, nEventsPerInputFile does not count.", code="UE"
    )
    pfnList: Any = parameter("Physical names of the input files.", row="J26", code="PL")
    runUntilClosed: Flag = flag("New files are picked up until the input is closed.", code="RC")
    orderInputBy: Literal["eventsAlignment"] | None = parameter("Order of the input files.", row="J6", code="OI")
    waitInput: Flag = flag("The task waits for an input dataset that does not exist yet.", code="WI")
    allowEmptyInput: Flag = flag("An input without files ends the task at once instead of breaking it.", code="AE")
    addNthFieldToLFN: Counts = parameter(
        "Which fields of the input dataset's name, counted from 1, ${MIDDLENAME} stands for.", ()
    )
    useFileAsSourceLFN: Flag = flag("Those fields come from the input file's name; a job has files of one such name.", code="UF")
    instantiateTmpl: Flag = flag("Outputs are templates: jobs write into a new dataset named after each.", code="IT")
    instantiateTmplSite: Flag = flag("The same, with a dataset for each computing queue.", code="IA")
    ignoreMissingInDS: Flag = flag("An input dataset that is deleted after the submission is skipped.", code="IM")
    inFilePosEvtNum: Flag = flag("The number of an event is its position in the file.", row="J13", code="IF")
    useInFilesInContainer: Flag = flag("List of files by container.", row="J26")
    useInFilesWithNewAttemptNr: Flag = flag(
        "A file that an item names may have been made again: name.2 stands for name.1, the newest there is counts."
    )
    getNumEventsInMetadata: Flag = flag("Events of files from the catalogue; they are.")
    loadXML: str = text("Jobs listed one by one in XML.", lines=True, row="J27", code="LX")
    segmentedWork: Flag = flag("One numbered pseudo input for each segment.", row="J27", code="SW")
    segmentSpecs: Any = parameter("The segments.", row="J27")
    inputPreStaging: Flag = flag("Inputs are staged from tape before jobs are made of them.", code="IS")
    noInputPooling: Flag = flag("With noWaitParent: jobs as soon as there are files for one.", code="NI")
    nChunksToWait: Whole = number(
        "With noWaitParent: so many jobs are made at once, when there are files for them; 20 when absent.",
        low=1,
        high=10_000,
        code="NT",
    )
    nScouts: Whole = number(
        "How many jobs measure the task first; 10 where not given. None do where fewer than twice as many jobs are expected.",
        low=1,
        high=1000,
        code="NU",
    )
    period: Whole = number("Seconds between two rounds of jobs of a task without input.", low=1, code="PD")
    periodJobs: Whole = number("Jobs a round; 1 when absent.", low=1, high=10_000, code="PN")
    periodUntil: str = text("When the rounds end, as in 2027-01-31T12:00:00Z; without it when the task is told to.", length=40)

    lostFiles: Names = names("Lost files of oldDatasetName that are made again, under the same names.")
    oldDatasetName: str = text("Dataset of another task, of which lost files are made again.", length=255)

    # What a job needs.
    coreCount: Whole = number("Cores a job; 0: as many as a slot has.", high=4096, default=1, column="core_count")
    maxCoreCount: Whole = number("Most cores a job, where they vary.", code="CC")
    walltime: Whole = number("Wall time for each MB of input.", column="walltime")
    walltimeUnit: str = text("Unit of walltime.", "walltime_unit", pattern=r"[A-Za-z0-9./ ]*")
    cpuTime: Amount = number("HS06 x seconds for each event; in thousandths with mHS06sPerEvent.", column="cpu_time")
    cpuTimeUnit: str = text("Unit of cpuTime.", "cpu_time_unit", pattern=r"m?HS06s(PerEvent)?(Fixed)?")
    cpuEfficiency: Whole = number(
        "Efficiency of one core, percent; 0: only baseWalltime counts.", high=100, default=90, column="cpu_efficiency"
    )
    baseWalltime: Whole = number("Seconds that do not scale with events.", default=600, column="base_walltime")
    ramCount: Whole = number("Memory, in ramUnit.", column="ram_count")
    ramUnit: str = text("MB, or MBPerCore.", "ram_unit", pattern=r"MB(PerCore(Fixed)?)?")
    ramCountUnit: str = text("Other name of ramUnit.", "ram_unit", pattern=r"MB(PerCore(Fixed)?)?")
    baseRamCount: Whole = number("Memory that does not scale with cores, MB.", column="base_ram_count")
    outDiskCount: Amount = number("Output for each MB of input or each event, in outDiskUnit.", column="out_disk_count")
    outDiskUnit: str = text("kB, MB or GB, with PerEvent for each event.", "out_disk_unit", pattern=SIZE_UNIT)
    workDiskCount: Amount = number("Work area of a job, in workDiskUnit.", column="work_disk_count")
    workDiskUnit: str = text("kB, MB or GB.", "work_disk_unit", pattern=SIZE_UNIT)
    ioIntensity: Amount = number("Input and output for each second and core, in ioIntensityUnit.", column="io_intensity")
    ioIntensityUnit: str = text("Unit of ioIntensity.", "io_intensity_unit", pattern=r"kBPerS")
    mergeCoreCount: Whole = number("Cores of a merge job; one when absent.", column="merge_core_count", high=1000)
    mergeRamCount: Whole = number("Memory of a merge job, MB; 2000 when absent, and at least.", column="merge_ram_count")
    retryRamOffset: Whole = number("Memory after a failure for lack of it: at least this, in ramUnit.", code="RX")
    retryRamStep: Whole = number("Memory after such a failure: more in steps of this.", code="RY")
    retryRamMax: Whole = number("Memory after such a failure: at most this.", code="RZ")

    # Where the jobs may run.
    cloud: str = text("Cloud; WORLD for brokerage to a nucleus.", "cloud")
    site: str = text("Queues to which the jobs go, with commas.", "site")
    nucleus: str = text("Nucleus of the task.", "nucleus")
    includedSite: Names = names("Only these queues.", code="LS")
    excludedSite: Names = names("None of these queues.", code="LS")
    stations: ShortNames = names("The jobs get matched only at sites that advertise one of these stations.")
    t1Weight: Whole = number("Weight of queues at the nucleus; -1: only those.", low=-1, code="TW")
    minCpuEfficiency: Whole = number(
        "CPU efficiency of the scouts, percent, below which the task is exhausted.", high=100, code="MC"
    )
    bannedSites: ShortNames = names("None of the pilots at these sites gets its jobs.")
    gridCEs: ShortNames = names("Only pilots on one of these computing elements get its jobs.")
    pilotTypes: ShortNames = names("Only pilots of one of these types get its jobs.")
    jobTypes: ShortNames = names("Only pilots that take one of these types of jobs get its jobs.")
    tags: ShortNames = names("Only pilots with all of these tags get its jobs.")
    setup: str = text("Only pilots of this setup get its jobs, and those that name none.", length=32)
    binding: Literal["early", "late", "late_after"] | None = parameter(
        "When a job gets its queue: early, when it is made; late, when a pilot of any queue that may run it asks; late_after, "
        "when it is made, and open to the other queues once it has waited there. Absent: as the key BINDING says."
    )
    bindingAfter: Whole = number("With binding late_after: seconds that a job waits at its queue first.", low=1)
    workTo: Literal["own", "children", "first"] | None = parameter(
        "Who does the work: own queues, child brokers that pull it, or whoever is first. Absent: as the key WORK_TO says.",
        column="work_to",
    )
    team: str = text("Only child brokers of this team pull its work, and those that have none.", length=64)
    trustSitelists: Flag = flag("Child brokers run it at sites that do not have its input, which is read over the network.")
    trustPUSitelists: Flag = flag("So they do where a site does not have its pile-up.")
    ipConnectivity: str = text("full or http, with #IPv4 or #IPv6.", pattern=r"(full|http)(#IPv[46])?")
    allowInputLAN: Literal["use", "only"] | None = parameter("Direct reading in the site; only: not at queues without.")
    allowInputWAN: Flag = flag("Input may be read from other sites, at queues that do so.", code="IW")
    avoidVP: Flag = flag("No virtual-placement queues.", code="AV")
    onlyTagsForFC: Flag = flag("Fat containers by tag only.", code="OT")
    cloudAsVO: Flag = flag("The jobs' VO is the cloud.", row="J26", code="CV")
    intermediateTask: Flag = flag("Inside a full chain: nothing is copied to the nucleus.", code="IN")
    useLocalIO: Flag = flag("Inputs are always copied to the work area; pilots do.", code="LI")
    forceStaged: Flag = flag("Other name of useLocalIO.", code="LI")
    fullChain: Literal["only", "require", "capable"] | None = parameter("Whole chain at the nucleus.", row="J15", code="FU")
    altStageOut: Literal["on", "off", "force"] | None = parameter("Another storage when the first fails.", row="U5", code="AT")
    stayOutputOnSite: Flag = flag("Outputs stay where they are made: nothing is copied to the nucleus.", code="SO")
    destination: str = text(
        "Storage endpoint to which all outputs and logs are copied when the task has ended, but for those with their own.",
        length=60,
    )
    ddmBackEnd: str = text("Which data management.", default="local", row="U5", code="DE")
    allowIncompleteInDS: Flag = flag("Replicas may be incomplete.", row="P7", code="AI")
    noWaitParent: Flag = flag("Begins while its parent still writes the input.", code="NW")
    pushJob: Flag = flag("Jobs are pushed by a message broker.", row="U5", code="PJ")
    useSecrets: Flag = flag("The user's secrets go with the job.", row="U5", code="ST")
    encJobParams: Flag = flag("Job parameters are encoded on the way.", row="U5", code="EJ")
    debugMode: Flag = flag("Jobs send their output while they run.", row="U5", code="DM")
    noLoopingCheck: Flag = flag("No check for jobs that stand still; pilots have none.", code="LC")
    messageDriven: Flag = flag("Agents are woken by messages; all are.", code="MD")
    pushStatusChanges: Flag = flag("Changes of state are sent out as messages.", row="U5", code="PC")
    noExecStrCnv: Flag = flag("The pilot leaves the command as it is; it does.", code="NC")
    writeInputToFile: Flag = flag("Names of inputs come in a file.", row="U5", code="WF")
    putLogToOS: Flag = flag("Logs go to an object store.", row="U5", code="PO")
    useZipToPin: Flag = flag("Zipped datasets hold inputs on disk.", row="J26", code="UZ")
    osMatching: Flag = flag("The operating system must be that of the submitter.", row="P5", code="OS")
    transferType: str = text("How input is read over the network; only direct is known.", default="direct", length=20)
    taskBrokerOnMaster: Flag = flag("The nucleus is chosen by the master datasets only.")
    toStaging: Flag = flag("Other name of inputPreStaging.", code="IS")
    panda_data_carousel: Flag = flag("Other name of inputPreStaging.", code="IS")
    remove_rule_when_done: Flag = flag("Copies that were staged for the task go when it has ended.", code="RD")

    # Retries and endings.
    maxAttempt: Whole = number("Tries a file, those that were closed or cancelled included.", low=1, high=999, default=3)
    maxFailure: Whole = number("Failures a file; no limit when absent.", low=1, high=999)
    disableAutoRetry: Flag = flag("Each file is tried once.", code="DR")
    disableReassign: Flag = flag(
        "No time limit takes its jobs back, nor does the silence of a pilot, nor are they brokered anew.", code="DI"
    )
    allowPartialFinish: Flag = flag("A job may finish with inputs left over.", row="J13", code="AP")
    useExhausted: Flag = flag("An incomplete end of a production task waits as exhausted.", code="UX")
    goal: Percent | None = parameter("Percent of events or files at which the task is good enough.", column="goal")
    termCondition: str = text("The goal in words, as in: 90% of files.", "term_condition")
    failWhenGoalUnreached: Flag = flag("A task below its goal fails.", code="FG")
    noAutoPause: Flag = flag("Never throttled, however many of its jobs fail.", code="NP")
    workflowHoldup: Flag = flag(
        "Steps of a workflow feed its input: it uses what comes, and ends when it is told that the input is complete.", code="WH"
    )
    disableAutoFinish: Flag = flag("No end by a goal that is reached, nor of an exhausted task by time.", code="DF")
    noThrottle: Flag = flag("Never throttled, however often its files were tried.")
    outputPostProcessing: PostProcessing | None = parameter(
        "What a plugin does with the outputs when the task ends well: its `name`, and what else it wants to know."
    )

    # Merging.
    mergeOutput: Flag = flag("Outputs are merged by jobs of the task itself, where they were made.", code="MO")
    mergeSpec: dict[str, Any] | None = parameter("How merge jobs run: `transPath`, `jobParameters`; without it files are joined.")
    umNameAtEnd: Flag = flag("Datasets of unmerged files end in .panda.um, and do not begin with panda.um.")
    nFilesPerMergeJob: Whole = number("Files of an output that a merge job joins.", low=1, high=1000, code="ZF")
    nEventsPerMergeJob: Whole = number("Events that a merge job joins, one unmerged file at least.", low=1, code="ZE")
    nGBPerMergeJob: Whole = number(
        "GB of the largest output that a merge job joins; 5 when absent.", low=1, high=10_000, code="ZG"
    )
    nMaxFilesPerMergeJob: Whole = number(
        "Most files of an output that a merge job joins; 50 when absent.", low=1, high=1000, code="ZM"
    )

    # Builds, pre-processing, scouts.
    buildSpec: dict[str, Any] | None = parameter("A job that compiles the user's sources first.", row="J26", code="UB")
    preproSpec: dict[str, Any] | None = parameter(
        "A job before all others whose result fills in parameters: `transPath`, `jobParameters`.", code="UP"
    )
    hpoWorkflow: Flag = flag("Hyper-parameter optimisation.", row="J27", code="HO")
    hpoRequestData: dict[str, Any] | None = parameter("Its request.", row="J27")
    skipScout: Flag = flag("No scout jobs.", code="US")
    scoutSuccessRate: Whole = number("Tenths of the scouts that must succeed.", high=10, code="SS")
    maxNumJobs: Amount = number("Most jobs of an optimisation task.", row="J27", code="MN")
    totNumJobs: Amount = number("Most jobs of the task.", row="J27", code="TJ")

    # Event service, jumbo jobs and cloning.
    nEventsPerWorker: Amount = number("Events a range; makes the task one of the event service.", row="J13", code="ES")
    useJobCloning: Literal["runonce", "storeonce"] | None = parameter(
        "The same work at several queues; the first that runs, or stores, wins.", row="J13", code="UC"
    )
    fineGrainedProc: Flag = flag("Books of events for any payload.", row="J13", code="FP")
    nEsConsumers: Amount = number("Consumers a job set.", row="J13", code="EC")
    nSitesPerJob: Amount = number("Queues a job set.", row="J13", code="NS")
    maxAttemptES: Amount = number("Tries an event range.", row="J13", code="XA")
    maxAttemptEsJob: Amount = number("Tries a consumer.", row="J13", code="XJ")
    registerEsFiles: Flag = flag("Outputs of ranges are registered.", row="J13", code="RE")
    mergeEsOnOS: Flag = flag("Outputs of ranges are merged at the object store.", row="J13", code="ME")
    notDiscardEvents: Flag = flag("Ranges that are done stay done at a retry.", row="J13", code="ND")
    decAttOnFailedES: Flag = flag("Only failures use up tries of a range.", row="J13", code="XF")
    switchEStoNormal: Flag = flag("The last few events run as normal jobs.", row="J13", code="SE")
    onSiteMerging: Flag = flag("Outputs of ranges are merged inside the job.", row="J13", code="OM")
    usePrefetcher: Flag = flag("Ranges are read ahead.", row="J13", code="UT")
    resurrectConsumers: Flag = flag("Dead consumers are made again.", row="J13", code="SC")
    esmergeSpec: dict[str, Any] | None = parameter("How ranges are merged.", row="J13")
    objectStore: str = text("Where outputs of ranges are put.", row="J13")
    nEventsPerOutputFile: Amount = number("Events an output file.", row="J13")
    esFraction: Amount = number("Chance that the task becomes one of the event service.", row="J13")
    esConvertible: Flag = flag("The task may become one of the event service.", row="J13")
    nJumboJobs: Amount = number("Jumbo jobs of the task.", row="J14", code="NJ")
    maxJumboPerSite: Amount = number("Jumbo jobs a queue.", row="J14", code="MJ")

    @property
    def instantiates(self) -> bool:
        """Whether jobs write into concrete datasets that are made of those that the task names."""
        return self.instantiateTmpl or self.instantiateTmplSite


TASK_PARAMETERS: Mapping[str, Parameter] = parameters(TaskParameters)
"""All known parameters by name, in the order of the document."""

_EXTRA = re.compile(r"dsFor\w{1,20}")
EXTRA_DATASETS = Parameter("dsForXXX", "Further datasets for the input of the stream XXX, with commas.", lines=False)


def stream_of(name: str) -> str:
    """The stream for which a parameter of this name gives further datasets; empty for other names."""
    return name.removeprefix("dsFor") if _EXTRA.fullmatch(name) else ""


def find(name: str) -> Parameter | None:
    """The parameter called `name`; `dsFor` with any stream behind it is one."""
    return TASK_PARAMETERS.get(name) or (EXTRA_DATASETS if _EXTRA.fullmatch(name) else None)


def not_yet() -> tuple[str, ...]:
    """What a task cannot use yet."""
    return tuple(p.name for p in TASK_PARAMETERS.values() if not p.supported)


def read_parameters(params: Mapping[str, object]) -> tuple[TaskParameters, list[Problem]]:
    """The well-typed parameters of a task, and what is wrong with the others."""
    extra = {name for name in params if find(name) is EXTRA_DATASETS}
    task, problems = read(TaskParameters, {name: value for name, value in params.items() if name not in extra})
    for name in extra:
        if not isinstance(params[name], str | None):
            problems.append(problem(name, "type", f"expected a text, found {found(params[name])}"))
    return task, problems

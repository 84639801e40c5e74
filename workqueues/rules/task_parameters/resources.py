"""Task parameters that say what a job needs and where it may run."""

from __future__ import annotations

from workqueues.rules.jobs.lengths import TASK
from workqueues.rules.task_parameters.parameter import LARGEST, Parameter

_SIZE_UNIT = r"(bytes|B|kB|MB|GB)(PerEvent)?(Fixed)?"


def _need(name: str, column: str, doc: str, default: object = None, high: float = LARGEST) -> Parameter:
    """A whole number: its column holds no fraction."""
    return Parameter(name, "int", doc, default=default, column=column, high=high)


def _amount(name: str, column: str, doc: str) -> Parameter:
    return Parameter(name, "number", doc, default=0, column=column)


def _unit(name: str, column: str, doc: str, pattern: str) -> Parameter:
    return Parameter(name, "text", doc, pattern=pattern, length=TASK[column], column=column)


def _flag(name: str, doc: str, row: str = "", code: str = "", note: str = "") -> Parameter:
    return Parameter(name, "flag", doc, row, default=False, code=code, note=note)


NEEDS = (
    Parameter("coreCount", "int", "Cores a job; 0: as many as a slot has.", default=1, high=4096, column="core_count"),
    Parameter("maxCoreCount", "int", "Most cores a job, where they vary.", code="CC"),
    _need("walltime", "walltime", "Wall time for each MB of input.", 0),
    _unit("walltimeUnit", "walltime_unit", "Unit of walltime.", r"[A-Za-z0-9./ ]*"),
    _amount("cpuTime", "cpu_time", "HS06 x seconds for each event; in thousandths with mHS06sPerEvent."),
    _unit("cpuTimeUnit", "cpu_time_unit", "Unit of cpuTime.", r"m?HS06s(PerEvent)?(Fixed)?"),
    _need("cpuEfficiency", "cpu_efficiency", "Efficiency of one core, percent; 0: only baseWalltime counts.", 90, 100),
    _need("baseWalltime", "base_walltime", "Seconds that do not scale with events.", 600),
    _need("ramCount", "ram_count", "Memory, in ramUnit.", 0),
    _unit("ramUnit", "ram_unit", "MB, or MBPerCore.", r"MB(PerCore(Fixed)?)?"),
    _unit("ramCountUnit", "ram_unit", "Other name of ramUnit.", r"MB(PerCore(Fixed)?)?"),
    _need("baseRamCount", "base_ram_count", "Memory that does not scale with cores, MB.", 0),
    _amount("outDiskCount", "out_disk_count", "Output for each MB of input or each event, in outDiskUnit."),
    _unit("outDiskUnit", "out_disk_unit", "kB, MB or GB, with PerEvent for each event.", _SIZE_UNIT),
    _amount("workDiskCount", "work_disk_count", "Work area of a job, in workDiskUnit."),
    _unit("workDiskUnit", "work_disk_unit", "kB, MB or GB.", _SIZE_UNIT),
    _amount("ioIntensity", "io_intensity", "Input and output for each second and core, in ioIntensityUnit."),
    _unit("ioIntensityUnit", "io_intensity_unit", "Unit of ioIntensity.", r"kBPerS"),
    Parameter("mergeCoreCount", "int", "Cores of a merge job.", row="J8"),
    Parameter("mergeRamCount", "int", "Memory of a merge job.", row="J8"),
    Parameter("retryRamOffset", "int", "Memory after a failure: at least this.", row="J21", code="RX"),
    Parameter("retryRamStep", "int", "Memory after a failure: in steps of this.", row="J21", code="RY"),
    Parameter("retryRamMax", "int", "Memory after a failure: at most this.", row="J21", code="RZ"),
)

PLACES = (
    Parameter("cloud", "text", "Cloud; WORLD for brokerage to a nucleus.", length=TASK["cloud"], column="cloud"),
    Parameter("site", "text", "Queues to which the jobs go, with commas.", length=TASK["site"], column="site"),
    Parameter("nucleus", "text", "Nucleus of the task.", length=TASK["nucleus"], column="nucleus"),
    Parameter("includedSite", "names", "Only these queues.", code="LS"),
    Parameter("excludedSite", "names", "None of these queues.", code="LS"),
    Parameter("t1Weight", "int", "Weight of queues at the nucleus; -1: only those.", low=-1, code="TW"),
    Parameter("minCpuEfficiency", "int", "Percent below which scouts exhaust the task.", row="J20", code="MC"),
    Parameter("ipConnectivity", "text", "full or http, with #IPv4 or #IPv6.", pattern=r"(full|http)(#IPv[46])?"),
    Parameter("allowInputLAN", "text", "Direct reading in the site; only: not at queues without.", choices=("use", "only")),
    _flag("allowInputWAN", "Direct reading over the network.", row="P3", code="IW"),
    _flag("avoidVP", "No virtual-placement queues.", code="AV"),
    _flag("onlyTagsForFC", "Fat containers by tag only.", code="OT"),
    _flag("cloudAsVO", "The jobs' VO is the cloud.", row="J26", code="CV"),
    _flag("intermediateTask", "Inside a full chain: nothing is copied to the nucleus.", row="J15", code="IN"),
    _flag("useLocalIO", "Inputs are always copied to the work area; pilots do.", code="LI"),
    _flag("forceStaged", "Other name of useLocalIO.", code="LI"),
    Parameter("fullChain", "text", "Whole chain at the nucleus.", row="J15", choices=("only", "require", "capable"), code="FU"),
    Parameter("altStageOut", "text", "Another storage when the first fails.", "U5", choices=("on", "off", "force"), code="AT"),
    _flag("stayOutputOnSite", "Outputs stay where they are made; they do.", code="SO"),
    Parameter("destination", "text", "Where outputs go in the end.", row="J7"),
    Parameter("ddmBackEnd", "text", "Which data management.", row="U5", default="local", code="DE"),
    _flag("allowIncompleteInDS", "Replicas may be incomplete.", row="P7", code="AI"),
    _flag("noWaitParent", "Runs beside its parent.", row="J9", code="NW"),
    _flag("pushJob", "Jobs are pushed by a message broker.", row="U5", code="PJ"),
    _flag("useSecrets", "The user's secrets go with the job.", row="U5", code="ST"),
    _flag("encJobParams", "Job parameters are encoded on the way.", row="U5", code="EJ"),
    _flag("debugMode", "Jobs send their output while they run.", row="U5", code="DM"),
    _flag("noLoopingCheck", "No check for jobs that stand still; pilots have none.", code="LC"),
    _flag("messageDriven", "Agents are woken by messages; all are.", code="MD"),
    _flag("pushStatusChanges", "Changes of state are sent out as messages.", row="U5", code="PC"),
    _flag("noExecStrCnv", "The pilot leaves the command as it is; it does.", code="NC"),
    _flag("writeInputToFile", "Names of inputs come in a file.", row="U5", code="WF"),
    _flag("putLogToOS", "Logs go to an object store.", row="U5", code="PO"),
    _flag("useZipToPin", "Zipped datasets hold inputs on disk.", row="J26", code="UZ"),
    _flag("osMatching", "The operating system must be that of the submitter.", row="P5", code="OS"),
    Parameter("transferType", "text", "How inputs are read.", row="P3", default="direct"),
    _flag("taskBrokerOnMaster", "The nucleus is chosen by the master datasets only."),
    _flag("toStaging", "The task waits for staging.", row="J26"),
    _flag("panda_data_carousel", "Tape carousel.", row="J26"),
    _flag("remove_rule_when_done", "Staging rules are removed at the end.", row="J26"),
)

PARAMETERS = (*NEEDS, *PLACES)

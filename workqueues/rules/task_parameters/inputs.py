"""Task parameters that say what the task reads and how it is cut into jobs."""

from __future__ import annotations

from workqueues.rules.task_parameters.parameter import LARGEST, Parameter


def _count(name: str, doc: str, row: str = "", code: str = "", high: float = LARGEST) -> Parameter:
    """A number of things: at least one where it works, zero (not wished for) where it does not yet."""
    return Parameter(name, "int", doc, row, code=code, low=0 if row else 1, high=high)


def _flag(name: str, doc: str, row: str = "", code: str = "") -> Parameter:
    return Parameter(name, "flag", doc, row, default=False, code=code)


PARAMETERS = (
    Parameter("jobParameters", "any", "Items of the payload's command line, in order.", required=True),
    Parameter("log", "any", "Item, or list of items, for the logs of the jobs."),
    _flag("noInput", "The task reads no dataset; numbered pseudo files stand for its jobs."),
    _count("nFiles", "How many files of the master dataset are used; without input: how many jobs."),
    _count("nEvents", "How many events of the master dataset are used; without input: events in all.", high=10**12),
    _count("nFilesPerJob", "Files a job.", code="NF", high=10_000),
    _count("nEventsPerJob", "Events a job.", code="NE"),
    _count("nEventsPerInputFile", "Events in each input file, whatever the catalogue says.", code="EI"),
    _count("tgtNumEventsPerJob", "About so many events a job, in even pieces of each file.", code="TE"),
    _count("nGBPerJob", "Less than so many GB of input, output and work area a job; one file at least.", code="NG"),
    _count("nMaxFilesPerJob", "Most files a job.", code="MF", high=10_000),
    _count("maxEventsPerJob", "Most events a job of joined pieces.", row="J13", code="MX"),
    Parameter("tgtMaxOutputForNG", "number", "Wanted size of the largest output, GB.", row="J22", code="TN"),
    _count("minGranularity", "Events a piece, joined into jobs for each queue.", row="J13", code="DY"),
    _count("nEventsPerRange", "Events a piece, joined into jobs for each queue.", row="J13", code="DY"),
    Parameter("groupBoundaryID", "int", "How boundaries of files bind jobs and outputs: 1 to 4.", low=0, high=4, code="GB"),
    _count("maxWalltime", "Wanted longest wall time of a job, hours.", code="MW", high=10_000),
    Parameter("skipFilesUsedBy", "any", "Files that these tasks used are left out.", row="J23"),
    _flag(
        "skipShortInput", "Events behind the last whole nEventsPerJob of a file are left out, and files with fewer.", code="SI"
    ),
    _flag("skipShortOutput", "Jobs with too few events or files are left out.", code="SH"),
    _flag("respectLB", "A job keeps within one lumi block.", code="RL"),
    _flag("releasePerLB", "A lumi block is released when it is complete.", row="J9", code="RP"),
    _flag("orderByLB", "Files are used in the order of their lumi blocks.", code="OL"),
    _flag("respectSplitRule", "Scouts and open inputs also obey the split rules.", row="J20", code="RR"),
    _flag("reuseSecOnDemand", "Secondary files are used again when there are too few.", code="RO"),
    _flag("useRealNumEvents", "Where the catalogue knows the events of a file, nEventsPerInputFile does not count.", code="UE"),
    Parameter("pfnList", "any", "Physical names of the input files.", row="J26", code="PL"),
    _flag("runUntilClosed", "New files are picked up until the input is closed.", row="J9", code="RC"),
    Parameter("orderInputBy", "text", "Order of the input files.", row="J6", choices=("eventsAlignment",), code="OI"),
    _flag("waitInput", "The task waits for an input dataset that does not exist yet.", code="WI"),
    _flag("allowEmptyInput", "An input without files ends the task at once instead of breaking it.", code="AE"),
    Parameter(
        "addNthFieldToLFN", "counts", "Which fields of the input dataset's name, counted from 1, ${MIDDLENAME} stands for."
    ),
    _flag("useFileAsSourceLFN", "Those fields come from the input file's name; a job has files of one such name.", code="UF"),
    _flag("instantiateTmpl", "Outputs are templates: jobs write into a new dataset named after each.", code="IT"),
    _flag("instantiateTmplSite", "The same, with a dataset for each computing queue.", code="IA"),
    _flag("ignoreMissingInDS", "An input dataset deleted later is skipped.", row="J10", code="IM"),
    _flag("inFilePosEvtNum", "The number of an event is its position in the file.", row="J13", code="IF"),
    _flag("useInFilesInContainer", "List of files by container.", row="J26"),
    _flag("useInFilesWithNewAttemptNr", "Files come with new attempt numbers.", row="J10"),
    _flag("getNumEventsInMetadata", "Events of files from the catalogue; they are."),
    Parameter("loadXML", "text", "Jobs listed one by one in XML.", row="J27", code="LX"),
    _flag("segmentedWork", "One numbered pseudo input for each segment.", row="J27", code="SW"),
    Parameter("segmentSpecs", "any", "The segments.", row="J27"),
    _flag("inputPreStaging", "Inputs are staged from tape before the jobs.", row="J26", code="IS"),
    _flag("noInputPooling", "Jobs as soon as one input is there.", row="J9", code="NI"),
    _count("nChunksToWait", "Chunks to collect before jobs are made.", row="J9", code="NT"),
    _count("nScouts", "How many jobs measure the task first.", row="J20"),
    Parameter("period", "number", "Seconds between two rounds of jobs of a periodic task.", row="J16"),
    _count("periodJobs", "Jobs a round.", row="J16"),
    Parameter("periodUntil", "text", "When the rounds end.", row="J16"),
)

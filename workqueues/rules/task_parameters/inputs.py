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
    _count("tgtNumEventsPerJob", "About so many events a job, in even pieces of each file.", row="J12"),
    _count("nGBPerJob", "Less than so many GB of input, output and work area a job; one file at least.", code="NG"),
    _count("nMaxFilesPerJob", "Most files a job.", code="MF", high=10_000),
    _count("maxEventsPerJob", "Most events a job.", row="J6", code="MX"),
    Parameter("tgtMaxOutputForNG", "number", "Wanted size of the largest output, GB.", row="J22", code="TN"),
    _count("minGranularity", "Events a piece, joined into jobs for each queue.", row="J12", code="DY"),
    _count("nEventsPerRange", "Events a piece, joined into jobs for each queue.", row="J12", code="DY"),
    Parameter("groupBoundaryID", "int", "How boundaries of files bind jobs and outputs: 1 to 4.", "J6", low=0, high=4, code="GB"),
    _count("maxWalltime", "Wanted longest wall time of a job, hours.", row="J6", code="MW"),
    Parameter("skipFilesUsedBy", "any", "Files that these tasks used are left out.", row="J23"),
    _flag("skipShortInput", "Files with too few events for a whole job are left out.", row="J6"),
    _flag("skipShortOutput", "Jobs with too few events are left out.", row="J6"),
    _flag("respectLB", "A job keeps within one lumi block.", row="J6", code="RL"),
    _flag("releasePerLB", "A lumi block is released when it is complete.", row="J6", code="RP"),
    _flag("orderByLB", "Lumi blocks in order.", row="J6", code="OL"),
    _flag("respectSplitRule", "Scouts and open inputs also obey the split rules.", row="J20", code="RR"),
    _flag("reuseSecOnDemand", "Secondary files are used again when there are too few.", row="J4", code="RO"),
    _flag("useRealNumEvents", "Events a file from the catalogue's metadata.", row="J12", code="UE"),
    Parameter("pfnList", "any", "Physical names of the input files.", row="J26", code="PL"),
    _flag("runUntilClosed", "New files are picked up until the input is closed.", row="J9", code="RC"),
    Parameter("orderInputBy", "text", "Order of the input files.", row="J6", choices=("eventsAlignment",), code="OI"),
    _flag("waitInput", "The task waits for an input dataset that does not exist yet.", code="WI"),
    _flag("allowEmptyInput", "An input without files ends the task at once instead of breaking it.", code="AE"),
    Parameter("addNthFieldToLFN", "any", "Fields of the input's name for the outputs' names.", row="J7", code="AN"),
    _flag("useFileAsSourceLFN", "Those fields come from the file, not the dataset.", row="J7", code="UF"),
    _flag("ignoreMissingInDS", "An input dataset deleted later is skipped.", row="J10", code="IM"),
    _flag("inFilePosEvtNum", "The number of an event is its position in the file.", row="J13", code="IF"),
    _flag("useInFilesInContainer", "List of files by container.", row="J26"),
    _flag("useInFilesWithNewAttemptNr", "Files come with new attempt numbers.", row="J10"),
    _flag("getNumEventsInMetadata", "Events from the metadata of the files.", row="J12"),
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

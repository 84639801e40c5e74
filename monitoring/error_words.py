"""What the error codes of jobs mean and what helps, for the glossary and the pages of errors; a test looks for codes without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ErrorWord(NamedTuple):
    """What went wrong, and what helps: a sentence each."""

    means: str
    helps: str


def _table(text: str) -> dict[str, ErrorWord]:
    words = {}
    lines = iter(text.strip().splitlines())
    for first, helps in zip(lines, lines, strict=True):
        code, means = first.split(" | ")
        words[code] = ErrorWord(means, helps.strip())
    return words


ERRORS: Mapping[str, ErrorWord] = _table("""
BAD_JOB | The pilot could not make sense of the job that it was given.
  Tell the operators: pilot and broker may be of different versions.
BAD_METADATA | What the payload told of itself could not be read.
  Correct what the payload writes to its report.
BAD_PARAMETERS | The line of parameters could not be taken apart, as when a quote is not closed.
  Correct jobParameters and submit the task anew.
INPUT_CORRUPT | An input file has another size or checksum than the catalogue says.
  The copy is marked as bad, and another one is read where there is one.
INPUT_MISSING | An input file is at none of its places.
  The file is looked for; when it does not come back, it is recovered or given up.
KILLED | The job was killed on request while it ran.
  Nothing is wrong with the payload.
LOST_HEARTBEAT | Nothing was heard of the job's pilot for too long.
  The inputs are tried again; many at one queue are for its administrators.
MERGE_FAILED | The outputs could not be merged, as often as it was tried.
  What was to be merged is made again; look at the errors of the merge jobs.
MERGE_GONE | A job that was to be merged ended otherwise, so that nothing was left to merge.
  What it held is merged with others, or made again.
NO_CONTAINER | The task needs a container and the node has none of the programs that run one.
  Leave the queue out, or have its administrators install one.
OUTPUT_EXISTS | A file with the name of an output is already on the storage.
  No failure is counted; the next try writes another name.
OUTPUT_MISPLACED | An output was reported at another storage than the job was given.
  Tell the operators: the pilot does not do what it is told.
OUTPUT_MISSING | The payload ended well without writing an output.
  Check the names in jobParameters, or allow the output to be missing.
OUTPUT_REGISTERED | An output has the name of a file that is registered already.
  Give the outputs of the task names that no other task uses.
OUTPUT_TOO_LARGE | An output is larger than a file may be.
  Split the work into smaller jobs.
OUTPUT_UNKNOWN | The pilot reported an output that the job does not have.
  Tell the operators: the pilot does not do what it is told.
PAYLOAD | The pilot reported a failure without a code.
  Look at the job's log.
PAYLOAD_DISK | The payload wrote more to the working directory than its job has, and was stopped.
  Retry the task with a larger workDiskCount, or with fewer input files a job.
PAYLOAD_EXIT | The payload ended with an exit code that is not 0.
  Its last line of output stands beside it; the log of the job has the rest.
PAYLOAD_LOST | The payload vanished, or left processes that nobody could look after.
  One node is mostly to blame; look at which nodes the jobs were on.
PAYLOAD_MEMORY | The payload used more memory than its job has, and was stopped.
  Jobs of tasks with scouts get more by themselves; else retry the task with a larger ramCount.
PAYLOAD_START | The payload could not be started.
  Check transPath and whether the release is installed at the site.
PILOT_ERROR | The worker node failed, mostly its own disk.
  The inputs are tried again; where one node shows it often, it is for the site's administrators.
PILOT_STOPPED | The pilot was told to stop, as by its batch system.
  The inputs are tried again by themselves; many at one queue are for its administrators.
STAGEIN_FAILED | Input files could not be copied to the node.
  The inputs are tried again; many at one storage are for its administrators.
STAGEOUT_FAILED | Output files could not be written to the storage.
  The inputs are tried again; many at one storage are for its administrators.
STORAGE_DOWN | A storage that the job needs was not there.
  No try is counted; its jobs wait until it is back.
TIMEOUT | The job stayed in one state for longer than it may.
  Look at why on its page; its inputs are tried again.
TOREASSIGN | The job waited for too long where it was, or its task was moved.
  Its inputs are brokered anew; nothing is wrong with the payload.
TRANSFER_FAILED | An output could not be brought to where it is wanted.
  Look at the transfers of the file; the job's inputs are tried again.
TRF_NOT_FOUND | The program of the task is not where it should be.
  Correct transPath, or have the release installed.
WALLTIME | The payload ran longer than its job may, and was stopped.
  Retry the task with a larger cpuTime or fewer events a job.
""")


def known_help(code: str) -> str:
    """What helps against an error; empty for a code that a pilot or another program made up."""
    return ERRORS[code].helps if code in ERRORS else ""

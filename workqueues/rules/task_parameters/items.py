"""What one item of jobParameters or log may say, by its type. Source: facts on task parameters 2.2.

Here: keys and their types. Not here: the datasets, streams and file names that follow from them (`rules.refine.items`).
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from broker_site.foundation.outside_data import STRICT, Flag
from workqueues.rules.jobs.lengths import DATASET, FILE_NAME, TEMPLATE
from workqueues.rules.task_parameters.declaration import Amount, Given, Names, Whole, flag, number, parameter, text

DATASET_NAME = r"[A-Za-z0-9][A-Za-z0-9._:/-]*"
MOST_CHARACTERS = 20_000
"""Most characters in the text of one item."""


def _value(required: bool) -> Any:
    return text("Text with placeholders.", length=MOST_CHARACTERS, required=required)


def _ratio(doc: str, default: float = 0) -> Any:
    return number(doc, low=1e-6, high=10**6, default=default)


class Item(BaseModel):
    """What every item may say."""

    model_config = STRICT

    value: str = _value(False)
    container: str = text("Container of the dataset.", length=DATASET["container_name"], pattern=DATASET_NAME)
    token: str = text("Storage token.", length=DATASET["storage_token"])
    hidden: Flag = flag("The value is not on the command line.")
    padding: Flag = parameter("A blank follows the value.", True)
    expand: Flag = flag("The datasets in the container are the inputs.", row="J26")
    consolidate: str = text("New container for the comma list.", row="J26")
    include: str = text("Only files whose names match.", row="J26")
    exclude: str = text("No files whose names match.", row="J26")
    check: Flag = flag("The dataset is checked for consistency.", row="J9")
    es_only: Flag = flag("Only on the command line of event-service jobs.", row="J13")


class Constant(Item):
    """Text alone."""

    type: Literal["constant"] = parameter("Text alone.", "constant", required=True)
    param_type: str = text("Means nothing here.")
    value: str = _value(True)


class Template(Item):
    """Text that differs from job to job."""

    type: Literal["template"] = parameter("Text that differs from job to job.", "template", required=True)


class Number(Template):
    """A number of the job: ${RNDMSEED}, ${FIRSTEVENT}, ${MAXEVENTS}, ..."""

    param_type: Literal["number"] = parameter("A number of the job.", "number", required=True)
    value: str = _value(True)
    offset: Whole = number("Seeds or events begin at 1 + offset.", high=2_000_000_000)


class Input(Template):
    """Files of a dataset."""

    param_type: Literal["input"] = parameter("Files that the job reads.", "input", required=True)
    dataset: Given = text("Name of the dataset, or several with commas.", required=True)
    pseudo: Flag = flag("Numbered records, no files, as for seq_number.")
    attributes: str = text("repeat, nosplit, manytime, cvmfs, ratio=2, ...", length=200)
    ratio: Amount = _ratio("Files for each file of the master.", 1)
    eventRatio: Amount = _ratio("Events for each event of the master.")
    nFilesPerJob: Whole = number("Files a job.", low=1, high=10_000)
    random: Flag = flag("Files in random order.")
    reusable: Flag = flag("Files are used again when too few are left, not tracked.")
    usedup: Flag = flag("Duplicates are kept; the catalogue has none in a dataset.")
    indexConsistent: Flag = flag("Files whose number no partner dataset has are left out.")
    check: Flag = flag("Of a dataset that the parent wrote only files that it has finished and that are not lost.")
    pileup: Flag = flag("Pile-up: child brokers run the work where all of it is, or as trustPUSitelists says.")
    parentData: Flag = flag("Parents of the input: child brokers run the work where all of them are, or as trustSitelists says.")
    files: Names = parameter("Only these files of its datasets, each of which must be there.", ())


class PseudoInput(Template):
    """Numbered records."""

    param_type: Literal["pseudo_input"] = parameter("A numbered record.", "pseudo_input", required=True)
    dataset: Given = text("seq_number or pseudo_dataset.", required=True)
    pseudo: Flag = flag("It is.")
    offset: Whole = number("Records begin at 1 + offset.", high=2_000_000_000)
    num_records: Whole = number("Length of the sequence.", low=1, high=1_000_000)


class Written(Template):
    """A file that the job writes."""

    value: str = _value(True)
    dataset: Given = text("Name of the dataset.", required=True)
    offset: Whole = number("Serial numbers begin at 1 + offset.", high=2_000_000_000)
    allowNoOutput: Flag = flag("A missing output is no error.")
    mergeOnly: Flag = flag("Only merge jobs write it, of mergeOutput; their log is log_merge.")
    transient: Flag = flag("The dataset is removed a while after the end of the task.")
    destination: str = text(
        "Storage endpoint to which the dataset is copied when the task has ended.", length=DATASET["destination"]
    )


class Output(Written):
    """A file of results."""

    param_type: Literal["output"] = parameter("A file that the job writes.", "output", required=True)
    sourceName: str = text("Name that the payload writes.", length=TEMPLATE["source_name"], pattern=FILE_NAME)


class Log(Written):
    """The log file."""

    param_type: Literal["log"] = parameter("The job's log file.", "log", required=True)


AnyItem = Constant | Input | PseudoInput | Number | Output | Log

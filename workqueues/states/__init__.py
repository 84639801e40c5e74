"""The state machines of demand: task, input and output dataset, input and output file, event range.

States are exactly those of seed 001; arrows and triggers come from the facts on tasks, datasets, files, events (row J5), reduced
as decision E1 says. Triggers in the database and drawings derive from these tables. All sets of states and types stand here.
"""

from typing import Literal, get_args

from broker_site.foundation.kernel.machine import Machine, Names


class TaskMachine(Machine):
    """The states of a task, and the sets of them that matter."""

    generating = Names("ready running scouting topreprocess preprocessing")
    """Jobs are made of its inputs, or before all others that of its preprocessing step (facts on tasks 1.1.1)."""

    offered = Names("ready running")
    """Elements are cut of its inputs for child brokers: it waits for no first jobs that show what it needs."""

    jobless = Names("ready topreprocess")
    """It leaves them with the first jobs that are made of it."""

    working = generating | ("pending",)
    """It has work left that counts at its nucleus (facts on tasks 1.1.1, on the brokerage 5)."""

    unread = Names("registered rerefine")
    """Its parameters are to be read, for the first time or again."""

    spoilt = Names("aborted aborting broken tobroken failed")
    """It is not run again with its parent (facts on commands 3.2, children)."""

    judged = generating | ("throttled",)
    """Its inputs may be through (facts on timeouts and endings 5.1)."""

    throttling = Names("ready running pending")
    """It may be throttled; a pending one where the state before it may."""

    achieving = Names("running pending")
    """A goal that is reached ends them early (facts on timeouts and endings 4.4)."""

    active = Names("registered defined ready scouting running paused throttled")
    """It counts for the limit of active tasks of its user (facts on commands, answers to a submission)."""

    brokered = Names("assigning ready")
    """The brokerage is next; while it says no, the task keeps the reason."""

    @property
    def placeless(self) -> Names:
        """No site or queue passed when it was last looked at; the next look has a time."""
        return self.brokered | ("pending",)

    commanded = Names("aborting finishing toretry toincexec")
    """A command was accepted and is not yet carried out."""

    retried_alive = Names("running scouting pending")
    """A task of analysis takes a retry as one of its jobs, and goes on (facts on task commands 2.5, code 5)."""

    rerun = Names("toretry toincexec")
    """It is to be run again, as far as its limits of retries allow."""

    merging = generating | ("pending", "scouted", "throttled", "finishing", "exhausted")
    """What its jobs made is merged, whether or not further jobs are made of its inputs."""

    stuck = Names("pending exhausted")
    """It waits for something to pass, or for somebody to act."""

    completed = Names("done finished")
    """What it wrote is complete to a child (facts on tasks 1.1.1, parent seen by a child)."""

    incomplete = Names("finished failed exhausted broken")
    """Not all of its work was done, for which its jobs may be the reason."""

    @property
    def corrupted(self) -> Names:
        """What it wrote must not be read by a child (facts on tasks 1.1.1, parent seen by a child)."""
        return self.states & (self.final - frozenset(self.completed))

    resumable = Names("paused throttled")
    """It does nothing, and goes back to the state before when it is told to."""

    steered = Names(
        "defined assigning ready pending scouting scouted running prepared passed finishing paused throttled exhausted"
    )
    """Its priority and its share are known, and its jobs and its turn go by them until it ends."""

    @property
    def adjustable(self) -> Names:
        """Jobs are made of it by what its row says, now or after a retry."""
        return self.steered - ("passed", "finishing") | ("finished", "failed", "aborted")

    reassignable = Names("defined assigning ready pending scouting scouted running exhausted")
    """It can be sent to another site or nucleus (facts on task commands 2.3)."""

    unplaced = Names("defined assigning")
    """Its nucleus is yet to be chosen, by itself."""

    releasable = Names("defined assigning ready pending scouting running")
    """What its inputs wait for can be passed over (facts on task commands 2.3)."""

    @property
    def persevering(self) -> Names:
        """Its inputs can have more tries while it lives, also where it rests and was so before (facts on task commands 2.4)."""
        return Names("ready running scouting") | self.interrupted

    interrupted = Names("pending paused throttled")
    """The state that it had before says what it is at."""

    @property
    def resting(self) -> Names:
        """It goes back to the state before by itself, once its time has come."""
        return self.accepting("wake") | self.accepting("unthrottle")

    @property
    def ending(self) -> Names:
        """Nothing is left to do but to give it its end."""
        return self.accepting("end") | self.accepting("broken")

    @property
    def settled(self) -> Names:
        """Ends that the counts of its files decided."""
        return self.outcomes("end")


TASK = TaskMachine(
    "task",
    """
# event      | from                                                          | to
register     | -                                                             | registered
define       | registered rerefine                                           | defined
preprocess   | registered rerefine                                           | topreprocess
start        | topreprocess                                                  | preprocessing
preprocessed | preprocessing                                                 | registered prepared
feed         | defined                                                       | assigning ready
assign       | assigning                                                     | ready
generate     | ready                                                         | running scouting
scouted      | scouting                                                      | scouted
scale_out    | scouted                                                       | running
refresh      | ready running throttled                                       | defined

# A temporary problem: the state before it is kept in old_status and comes back.
hold         | registered defined topreprocess preprocessing rerefine        | pending
hold         | ready running scouting prepared                               | pending
rebroker     | defined assigning ready scouting scouted running exhausted    | pending
wake         | pending                 | registered defined topreprocess preprocessing rerefine
wake         | pending                 | assigning ready running scouting prepared
throttle     | running ready pending                                         | throttled
unthrottle   | throttled                                                     | running ready

# The way to the end.
prepare      | running ready throttled preprocessing rerefine                | prepared
end          | prepared passed                                               | done finished failed
exhaust      | pending prepared ready running scouting                       | exhausted
exhaust      | topreprocess preprocessing toretry toincexec                  | exhausted
give_up      | exhausted                                                     | passed
break        | registered rerefine defined ready running scouting            | tobroken
broken       | tobroken                                                      | broken

# What commands cause (rules/task/commands.py), each with a name of its own.
abort        | registered defined assigning ready pending scouting scouted   | aborting
abort        | running finishing topreprocess preprocessing toretry          | aborting
abort        | toincexec rerefine paused throttled exhausted                 | aborting
aborted      | aborting                                                      | aborted
stop         | registered defined assigning ready pending scouting scouted   | finishing
stop         | running topreprocess preprocessing toretry toincexec          | finishing
stop         | rerefine paused throttled exhausted                           | finishing
stopped      | finishing                                                     | passed
reopen       | finished failed aborted exhausted                             | toretry
carry_on     | exhausted                                                     | running scouting
reopened     | toretry                                  | registered defined assigning ready finished failed aborted
extend       | finished failed aborted exhausted done                        | toincexec
extended     | toincexec                                        | rerefine finished failed aborted done
refined      | rerefine                                                      | ready
restart      | done finished exhausted                                       | registered
suspend      | registered defined assigning ready pending scouting scouted   | paused
suspend      | running prepared passed finishing aborting tobroken throttled | paused
suspend      | topreprocess preprocessing toretry toincexec rerefine exhausted | paused
continue     | paused                  | registered defined assigning ready pending scouting scouted
continue     | paused                  | running prepared passed finishing aborting tobroken throttled
continue     | paused                  | topreprocess preprocessing toretry toincexec rerefine exhausted
continue     | paused                  | done finished failed
""",
    final="done finished failed aborted broken",
)


class InputDatasetMachine(Machine):
    """The states of an input dataset, and the sets of them that matter."""

    unread = Names("defined toupdate")
    """Its files are to be read from the catalogue."""


INPUT_DATASET = InputDatasetMachine(
    "input_dataset",
    """
register | -                       | defined ready
fill     | defined toupdate        | ready
hold     | defined toupdate ready  | pending
wake     | pending                 | defined toupdate ready
refresh  | defined ready done      | toupdate
reread   | ready done              | defined
break    | defined toupdate        | broken
close    | defined toupdate ready pending | done
reopen   | done                    | ready
""",
    final="done broken",
)

OUTPUT_DATASET = Machine(
    "output_dataset",
    """
define   | -                              | defined
register | defined                        | ready
write    | ready prepared done            | running
prepare  | defined ready running          | prepared
close    | defined ready running prepared | done
""",
    final="done",
)


class InputFileMachine(Machine):
    """The states of an input file, and the sets of them that matter."""

    usable = Names("partial ready picked")
    """Jobs can be made of it, by a generator that picks it or has picked it."""

    used = Names("picked running finished failed")
    """It counts as used in its dataset; a partial one has events left to give."""

    in_use = Names("picked running")
    """A generator or a job has it."""

    spent = in_use | ("partial", "finished")
    """Something of it was processed, or is just now."""

    held = Names("ready picked")
    """It may carry the reason for which it is held back; picked where a generator has other events of it."""

    shared = Names("ready running")
    """Its events decide its state once jobs have had some of them, since no generator has it."""

    gone = Names("lost missing broken")
    """It is not there as the catalogue knew it, and counts as missing."""

    @property
    def unused(self) -> Names:
        """Neither a generator nor a job has it whole, and something of it can be given."""
        return self.accepting("pick")


INPUT_FILE = InputFileMachine(
    "input_file",
    """
register | -                    | ready
pick     | ready partial        | picked
release  | picked               | ready partial
use      | picked               | running
succeed  | running              | finished
return   | running              | ready
part     | running ready        | partial
give_up  | running ready partial | failed
lose     | ready                | lost
miss     | ready                | missing
corrupt  | ready                | broken
reopen   | failed lost missing broken | ready
recover  | finished             | ready
""",
    final="finished failed lost missing broken",
)


class OutputFileMachine(Machine):
    """The states of an output file, and the sets of them that matter."""

    unmade = Names("defined running")
    """Its job has not told of it: it is nowhere."""

    unmerged = Names("prepared merging")
    """It waits to become part of a merged file, or is just being merged."""

    stored = unmerged | ("finished",)
    """It was made, and lies on storage."""


OUTPUT_FILE = OutputFileMachine(
    "output_file",
    """
define   | -                               | defined running
start    | defined                         | running
produce  | running                         | prepared
merge    | prepared                        | merging
unmerge  | merging                         | prepared
finish   | running prepared merging        | finished
fail     | defined running prepared merging | failed
""",
    final="finished failed",
)


class EventMachine(Machine):
    """The states of an event range, and the sets of them that matter."""

    with_job = Names("ready sent running finished")
    """A job has the events."""

    processed = Names("done merged")
    """The events are processed."""

    @property
    def untold(self) -> Names:
        """The job has not told what became of the events."""
        return self.accepting("cancel")

    @property
    def spent(self) -> Names:
        """The try is over and the events were not processed."""
        return self.states - self.with_job - self.processed


EVENT = EventMachine(
    "event_range",
    """
register | -             | ready
send     | ready         | sent
run      | sent          | running
finish   | sent running  | finished
fail     | sent running  | failed
return   | sent running  | ready
give_up  | ready failed  | fatal
complete | finished      | done
discard  | finished done | discarded
cancel   | ready sent running | cancelled
merge    | done          | merged
corrupt  | done          | corrupted
""",
    final="cancelled discarded failed fatal merged corrupted",
)

SITE_OPEN = Names("Normal")
"""Sites that take new work; the words are those of the documents on work queues."""

SITE_DRAINED = Names("Draining")
"""Sites that end what they have."""

SITE_CLOSED = Names("Down Aborted")
"""Sites that run nothing."""

DatasetType = Literal["input", "pseudo_input", "random_seed", "output", "log", "trn_output", "trn_log", "tmpl_output", "tmpl_log"]
OutputType = Literal["output", "log"]
PremergedType = Literal["trn_output", "trn_log"]

TYPES = Names(get_args(DatasetType))
"""Types of datasets and files."""

INPUT_TYPES = Names("input pseudo_input random_seed")
"""Those that INPUT_DATASET and INPUT_FILE rule; all others are outputs."""

MASTER_TYPES = Names("input pseudo_input")
"""Those that a task names as its input, masters and their secondaries; random seeds are made for it."""

NUMBERED_TYPES = Names("pseudo_input random_seed")
"""Those that a task counts by: they are in no catalogue, and their files at no storage."""

OUTPUT_TYPES = Names(get_args(OutputType))
"""Those that a task names as its outputs; templates only name what is made of them."""

PREMERGED_TYPES = Names(get_args(PremergedType))
"""Those that jobs write to whose outputs are merged by others of the task: nobody is shown them unasked."""

WRITTEN_TYPES = OUTPUT_TYPES | PREMERGED_TYPES
"""Those that jobs write to."""

MUTABLE = "mutable"
"""The word for an input to which files may still come that the task uses, in place of the catalogue's (`state`)."""

LOG_TYPES = Names("log trn_log")
"""Those that hold the logs of jobs."""

_OF_INPUTS = f"NEW.type IN ({INPUT_TYPES.sql})"
_OF_OUTPUTS = f"NEW.type NOT IN ({INPUT_TYPES.sql})"

GUARDED = (
    (TASK, "workqueues_task", "TRUE"),
    (INPUT_DATASET, "workqueues_dataset", _OF_INPUTS),
    (OUTPUT_DATASET, "workqueues_dataset", _OF_OUTPUTS),
    (INPUT_FILE, "workqueues_file", _OF_INPUTS),
    (OUTPUT_FILE, "workqueues_file", _OF_OUTPUTS),
    (EVENT, "workqueues_eventrange", "TRUE"),
)
"""Machine, table and the rows it rules: what the migration and the test that compares both go through."""

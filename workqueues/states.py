"""The state machines of demand: task, input and output dataset, input and output file, event range.

States are exactly those of seed 001; arrows and their triggers come from the facts on tasks, datasets, files and events (row J5),
reduced to those states as decision E1 says. Triggers in the database and drawings derive from these tables.
"""

from broker_site.foundation.kernel.machine import Machine

TASK = Machine(
    "task",
    """
# event      | from                                                          | to
register     | -                                                             | registered
define       | registered rerefine                                           | defined
preprocess   | registered                                                    | topreprocess
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
reopened     | toretry                                                       | ready finished failed aborted
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

INPUT_DATASET = Machine(
    "input_dataset",
    """
register | -                       | defined ready
fill     | defined toupdate        | ready
hold     | defined toupdate ready  | pending
wake     | pending                 | defined toupdate ready
refresh  | defined ready done      | toupdate
reread   | ready done              | defined
break    | defined toupdate        | broken
close    | defined toupdate ready  | done
reopen   | done                    | ready
""",
    final="done broken",
)

OUTPUT_DATASET = Machine(
    "output_dataset",
    """
define   | -                              | defined
register | defined                        | ready
write    | ready done                     | running
prepare  | defined ready running          | prepared
close    | defined ready running prepared | done
""",
    final="done",
)

INPUT_FILE = Machine(
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
reopen   | failed lost missing  | ready
recover  | finished             | ready
""",
    final="finished failed lost missing broken",
)

OUTPUT_FILE = Machine(
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

EVENT = Machine(
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

INPUT_TYPES = ("input", "pseudo_input", "random_seed")
"""Types of datasets and files that INPUT_DATASET and INPUT_FILE rule; all others are outputs."""

GUARDED = (
    (TASK, "workqueues_task", "TRUE"),
    (INPUT_DATASET, "workqueues_dataset", "NEW.type IN ('input', 'pseudo_input', 'random_seed')"),
    (OUTPUT_DATASET, "workqueues_dataset", "NEW.type NOT IN ('input', 'pseudo_input', 'random_seed')"),
    (INPUT_FILE, "workqueues_file", "NEW.type IN ('input', 'pseudo_input', 'random_seed')"),
    (OUTPUT_FILE, "workqueues_file", "NEW.type NOT IN ('input', 'pseudo_input', 'random_seed')"),
    (EVENT, "workqueues_eventrange", "TRUE"),
)
"""Machine, table and the rows it rules: what the migration and the test that compares both go through."""

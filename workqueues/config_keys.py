"""Configuration keys of demand: which there are, what they mean and what holds without an override."""

from __future__ import annotations

from broker_site.foundation.gdpconfig.table import declare_table
from workqueues.rules.refine.working_groups import bad_members
from workqueues.rules.throttle.limits import ANALYSIS, PRODUCTION

declare_table(
    """
[watchdog]
PENDING_WAIT | duration | 1h | 50ms..30d | facts on timeouts 4.4; seed 000: 1 hour
    How long a pending task rests before it is tried again.
PENDING_WAIT_ANALYSIS | duration | 20min | 50ms..30d | seed 000: 20 minutes
    The same for analysis tasks.
PENDING_WAIT_PRIO_900 | duration | 30min | 50ms..30d | facts on timeouts 4.4
    The same for production tasks of priority 900 and more.
PENDING_WAIT_PRIO_950 | duration | 10min | 50ms..30d | facts on timeouts 4.4
    The same for production tasks of priority 950 and more.
PENDING_TIMEOUT_<label> | duration | 7d | 50ms..3650d | facts on gdpconfig 1.2.7
    A task of this source label pending for longer without success becomes exhausted; not while its parent runs.
EXHAUSTED_TIMEOUT | duration | 10d | 50ms..3650d | seed 001, exhausted tasks; decision A2
    An exhausted task that nobody retries ends so much later, as its files tell; not with disableAutoFinish.

MAX_JOB_FAILURE_RATE_TO_PAUSE_<label> | float | unset | 0..1 zero_is_unset | facts on gdpconfig 1.2.7; decision D25
    A running production task of this source label of whose jobs this part failed, or more, makes no more of them until it is
    resumed; not with noAutoPause. Counted from its start on, or since somebody last resumed it.
MAX_JOB_FAILURE_RATE_TO_PAUSE_<label>_<queue> | float | unset | 0..1 | facts on gdpconfig 1.2.7
    The same for one share or work queue. 0 = never.
MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE_<label> | float | unset | 0..1 zero_is_unset | facts on gdpconfig 1.2.7
    The same by what its jobs used: hours x cores x power of a core of those that failed, as a part of that of all that ended.
MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE_<label>_<queue> | float | unset | 0..1 | facts on gdpconfig 1.2.7
    The same for one share or work queue. 0 = never.
MIN_JOBS_TO_PAUSE_<label> | int jobs | 1000 | 1.. | facts on gdpconfig 1.2.7
    Not before so many of its jobs have ended.
MIN_REMAINING_JOBS_TO_PAUSE_<label> | int jobs | 100 | 0.. | facts on gdpconfig 1.2.7
    Not with fewer jobs left to come.

[pandaserver:dbproxy]
MAX_ACTIVE_TASKS_PER_USER_<label> | int tasks | unset | 0.. | facts on gdpconfig 1.2.4; facts on task parameters 2.4
    A new task of this source label is refused while its owner has more active ones than this; unset: no limit.

[pandaserver:prio_mgr]
WORKING_GROUP_MEMBERS | json | {} | | facts on users 7
    Who may submit for which working group: {"HIGG": ["ada", "bob"]}. Any other group needs the role production. Empty: nobody is
    asked.

[dbproxy]
SCOUT_RAMCOUNT_METHOD | enum maximum percentile | maximum | | seed 001, memory; decision H3
    Whether the memory of a task follows from the hungriest of its scouts, or from a percentile of them.
SCOUT_RAMCOUNT_RANK | float % | 75 | 0..100 | facts on gdpconfig 1.2.5
    The percentile.
SCOUT_RAMCOUNT_MARGIN | float % | 10 | 0..1000 | facts on gdpconfig 1.2.5
    What is added to it.
SCOUT_RAMCOUNT_MIN | int MB | 500 | 0..1000000 | facts on gdpconfig 1.2.5
    The least memory that scouts give a task, in its unit: what varies from job to job shall not end those after them.
SCOUT_CPUTIME_RANK | float % | 95 | 0..100 | seed 001, HS06sPerEvent
    Which percentile of the scouts gives the cpuTime of a task.
SCOUT_DISK_IO_CAP | float kB/s | unset | 0.. zero_is_unset | facts on gdpconfig 1.2.5
    The most that scouts give a task as diskIO.
SCOUT_WRONG_CPUTIME_THRESHOLD | float | 2 | 0.. | seed 001, exhausted tasks
    A production task whose scouts need more than so many times the cpuTime that it defines is exhausted. 0 = never.
SCOUT_SHORT_EXECTIME | duration | 4min | 0s..30d | seed 001, exhausted tasks
    Jobs of an analysis task that end in less time are short.
SCOUT_NUM_SHORT | int jobs | 5 | 0.. | seed 001, exhausted tasks
    With more short scouts than this an analysis task is exhausted, if many jobs would follow.
SCOUT_THR_SHORT | int jobs | 1000 | 0.. | seed 001, exhausted tasks
    Many: more than this.
SCOUT_RAM_THR_EXHAUSTED | int MB | unset | 0.. zero_is_unset | facts on workflows 7.8
    A task that asked for less memory than this, and whose scouts used more, is exhausted.
SCOUT_LOW_CPU_EFFICIENCY | float % | 0 | 0..100 | facts on gdpconfig 1.2.5
    Scouts that use less of their cores are inefficient.
SCOUT_NUM_CPU_INEFFICIENT | int | unset | 0..10 zero_is_unset | facts on gdpconfig 1.2.5
    With so many tenths of inefficient scouts a task is exhausted, if many jobs would follow.
SCOUT_THR_CPU_INEFFICIENT | int jobs | 20 | 0.. | facts on gdpconfig 1.2.5
    Many: more than this.
SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED | float kB/s | unset | 0.. zero_is_unset | facts on gdpconfig 1.2.5
    A task whose scouts read and write more than this for each core is excused for its efficiency.
SCOUT_CPU_ABUSE | float | 2 | 0.. | facts on workflows 7.8
    A task with a scout that used so many times the cores that it was given is exhausted. 0 = never.
SCOUT_MIN_OK_RATE_EXHAUSTED | float | unset | 0..1 zero_is_unset | facts on gdpconfig 1.2.5
    Where at least this part of the scouts succeeds, but less than the task wants, it is exhausted instead of broken.

MEASURE_FROM | int jobs | 5 | 0.. | facts on the brokerage 9
    What the jobs of a task need is measured once so many have finished, also where it had no scouts. 0 = only by scouts.
MEASURE_AGAIN | int jobs | 100 | 0.. | facts on the brokerage 9
    It is measured again once so many have finished. 0 = never.
MEASURE_PAUSE | duration | 30min | 0s..30d | facts on commands and retry 3.4
    A task is not measured again within so long because a job of it ran out of time.

# The same for one source label.
SCOUT_SHORT_EXECTIME_<label> | duration | unset | 0s..30d | facts on gdpconfig 1.2.5
    SCOUT_SHORT_EXECTIME for tasks of one source label.
SCOUT_NUM_SHORT_<label> | int jobs | unset | 0.. | facts on gdpconfig 1.2.5
    SCOUT_NUM_SHORT for tasks of one source label.
SCOUT_THR_SHORT_<label> | int jobs | unset | 0.. | facts on gdpconfig 1.2.5
    SCOUT_THR_SHORT for tasks of one source label.
SCOUT_LOW_CPU_EFFICIENCY_<label> | float % | unset | 0..100 | facts on gdpconfig 1.2.5
    SCOUT_LOW_CPU_EFFICIENCY for tasks of one source label.
SCOUT_NUM_CPU_INEFFICIENT_<label> | int | unset | 0..10 | facts on gdpconfig 1.2.5
    SCOUT_NUM_CPU_INEFFICIENT for tasks of one source label.
SCOUT_THR_CPU_INEFFICIENT_<label> | int jobs | unset | 0.. | facts on gdpconfig 1.2.5
    SCOUT_THR_CPU_INEFFICIENT for tasks of one source label.
SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED_<label> | float kB/s | unset | 0.. | facts on gdpconfig 1.2.5
    SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED for tasks of one source label.
SCOUT_MIN_OK_RATE_EXHAUSTED_<label> | float | unset | 0..1 | facts on gdpconfig 1.2.5
    SCOUT_MIN_OK_RATE_EXHAUSTED for tasks of one source label.

[retry_task]
TASK_MAX_ATTEMPT_<label> | int retries | unset | 0.. zero_is_unset | decision D20; facts on gdpconfig 1.2.7
    A task of this source label that was retried so often becomes exhausted when it is to be retried once more.
MAX_FAILED_HEP_SCORE_HOURS_<label> | float h | unset | 0.. zero_is_unset | decision D20; facts on gdpconfig 1.2.7
    So does one whose failed jobs used so much: hours x cores x power of a core.
MAX_FAILED_HEP_SCORE_RATE_<label> | float | unset | 0..1 zero_is_unset | decision D20; facts on gdpconfig 1.2.7
    So does one of whose work failed jobs took this part, among those that finished or failed.
MAX_JOB_FAILURE_RATE_<label> | float | unset | 0..1 zero_is_unset | decision D20; facts on gdpconfig 1.2.7
    So does one of whose jobs this part failed, among those that finished or failed.
JOB_MAX_ATTEMPT_<label> | int tries | unset | 0.. zero_is_unset | decision D20; facts on gdpconfig 1.2.7
    No retry of a task of this source label is accepted with a file that may be tried so often already.
MIN_CPU_EFFICIENCY_<label> | float % | unset | 0..100 zero_is_unset | decision D20; facts on gdpconfig 1.2.7
    A task whose finished jobs used less of their cores, in the middle, becomes exhausted when it is to be retried.

[storage]
LOST_CONFIRM | duration | 10min | 50ms..30d | decision D16
    From the look that misses a file on a storage that is up to the one that calls it lost; lost ones are looked for so often.
LOOK_AGAIN | duration | 30s | 50ms..30d | decision D16
    How often files that wait for a storage that is down are looked at again.
FULL_BELOW | float GB | 0.1 | 0.. | decision D16
    A storage whose file system has less free space than this is full: nothing is written there.
TRANSIENT_LIFETIME | duration | 14d | 50ms..3650d | facts on timeouts 5.3
    How long datasets are kept that a task calls transient, from its end on.

[feeder]
CHECK_INTERVAL | duration | 5min | 50ms..30d | facts on datasets 1.2.3
    How often the catalogue is asked for new files of an input that is still open, where the task uses these.
JOBS_TO_WAIT | int jobs | 20 | 1..10000 | facts on workflows 7.2
    New files of a parent that still runs are collected until there are enough for so many jobs; nChunksToWait of a task comes
    first.

[elements]
WORK_TO | enum own children first | own | | row X5; decision J7
    Who does the work of tasks that do not say it: own queues, child brokers that pull it, or whoever is first. A task that cannot
    be divided into elements goes to own queues.
WORK_TO_<activity> | enum own children first | unset | | row X5
    The same for tasks of one activity: production, analysis or generic.
ELEMENT_FILES | int files | 1000 | 1..1000 | row W1; decision J2
    Most files, or records of a task without input, of one element: what a child broker pulls at a time.
ELEMENTS_AHEAD | int elements | 1000 | 1..100000 | row W1
    So many elements of one task wait at most; the next are cut when these are pulled.
LEASE | duration | 15min | 1s..30d | row W6; decision J3
    How long a child broker has an element after it was last heard of; then what is not settled is available again.
MOST_HELD | int elements | 10000 | 1..1000000 | row W6
    So many elements one child broker has at most; it gets no more until some of them ended or came back.
RETURN_PAUSE | duration | 10min | 50ms..30d | row W6
    An element that a child gave back goes to others at once, and to this child not before so long. When one gives it back again
    without the end of a file, nobody gets it for a while, twice as long each time.
RETURN_PAUSE_MAX | duration | 6h | 50ms..30d | row W6
    Longest such pause.
MOST_RETURNS | int | 10 | 0..1000 | row W6
    The files of an element that was given back so often in a row, without the end of a file, fail. 0 = never.
LOCATIONS | duration | 1h | 1s..30d | row W5; facts on work queues b3
    How often the places of the files of elements are looked up that wait.
CANCEL_GRACE | duration | 1d | 1s..30d | facts on work queues b2
    An element whose cancellation was asked for ends so much later, also where its child says nothing.
EMPTY_GROUP | duration | 5min | 1s..30d | decision J6
    How long a group of elements is kept of which none waits.
WORK_PER_CYCLE | int elements | 100 | 1..1000 | row W2; facts on work queues b5
    As a child: most elements of one pull.
CLOCK_ERROR | duration | 1d | 1s..30d | row X5
    A broker whose clock is off by more than this is told so. Leases do not depend on it.

[jobsplitter]
MAX_FILES_PER_JOB | int files | 200 | 1..10000 | facts on splitting 8.1
    Most master files of a job whose task sets neither nFilesPerJob nor nMaxFilesPerJob.

[shares]
SHARE_MODEL | enum global work_queue | global | | decision C1
    What drives the work of a VO: the leaves of its share tree, or its work queues (also without a tree).
SHARE_MEMORY | float s | 300 | 0..86400 | decision C4
    What a share ran too much or too little lately counts beside what it runs now, when the next one is chosen, and fades to a
    third in so long. 0 = only what runs now counts.

[task_watcher]
BOOST_PROGRESS | float % | 95 | 0..100 | seed 001, automatic priority boosting
    A production task of whose input files so many are through is boosted, when few jobs are left.
BOOST_JOBS | int jobs | 100 | 0..1000000 | seed 001, automatic priority boosting
    So few: fewer than this. 0 = no task is boosted.
BOOST_PRIORITY | int | 900 | | seed 001, automatic priority boosting
    The priority that a boosted task and its jobs get, unless theirs is higher.
EXPRESS_SHARE | str | Express | | seed 001, automatic priority boosting; decision D22
    The leaf share that a boosted task moves to, with its jobs that wait, where the share tree of its VO has it.

BOOST_PRIORITY_ANALYSIS | int | 1000 | | facts on the brokerage 10
    The priority that a task of a user and its waiting jobs get when it is nearly done, unless theirs is higher.
EXPRESS_SHARE_ANALYSIS | str | Express Analysis | | facts on the brokerage 10; decision D22
    The leaf share that such a task moves to, with its jobs that wait, where the share tree of its VO has it.

[pandaserver:analy_eval]
USER_USAGE_THRESHOLD_A | int slots | 1000 | 0.. | facts on gdpconfig 1.2.8
    Users and groups with no more running cores than this are of class A.
USER_USAGE_THRESHOLD_B | int slots | 10000 | 0.. | facts on gdpconfig 1.2.8
    With no more than this of class B, with more of class C.
PROGRESS_TO_BOOST_A | float % | 90 | 0..100 | facts on gdpconfig 1.2.8
    A task of a user of class A of whose input files so many are through is nearly done, when few jobs are left.
PROGRESS_TO_BOOST_B | float % | 95 | 0..100 | facts on gdpconfig 1.2.8
    The same for class B. Tasks of class C are not boosted.
MAX_REM_JOBS_TO_BOOST_A | int jobs | 500 | 0.. | facts on gdpconfig 1.2.8
    Few, for class A: no more than this.
MAX_REM_JOBS_TO_BOOST_B | int jobs | 200 | 0.. | facts on gdpconfig 1.2.8
    Few, for class B.

[jobgen]
JOB_SUBMISSION | bool | true | | facts on gdpconfig 1.2.4
    Whether jobs are made for the VO.
""",
    {"WORKING_GROUP_MEMBERS": {"check": bad_members}},
)

_LEVELS = "<queue>: a share or work queue, also with _ and a resource type, MCORE* or SCORE*; the narrowest wins."

for _component in (PRODUCTION, ANALYSIS):
    declare_table(f"""
[{_component}]
NQUEUELIMIT_<queue> | int jobs | unset | 0.. zero_is_unset | seed 001, job throttling; facts on gdpconfig 1.2.4
    So many jobs of a unit may always wait. {_LEVELS}
NQUEUECAP_<queue> | int jobs | unset | 0.. zero_is_unset | seed 001, job throttling; facts on gdpconfig 1.2.4
    While more jobs of a unit wait, none are made. {_LEVELS}
NRUNNINGCAP_<queue> | int jobs | unset | 0.. zero_is_unset | seed 001, job throttling; facts on gdpconfig 1.2.4
    While more jobs of a unit run, none are made at all. {_LEVELS}
THROTTLE_THRESHOLD | float | 2 | 0.. | seed 001, job throttling
    While a unit has more than this many jobs waiting for each that runs, none are made.
THROTTLE_THRESHOLD_FOR_WORK_SHORTAGE | float | 2 | 0.. | seed 001, job throttling
    THROTTLE_THRESHOLD while core.WORK_SHORTAGE is on.
DEAD_QUEUE | duration | 3h | 50ms..30d | decision C7
    Jobs at a queue where no pilot has been seen for so long, or that hands nothing out, do not count as waiting for the ratio.
DEAD_QUEUE_BESIDE_IDLE | duration | 5min | 50ms..30d | decision C7
    The same while a slot that takes jobs of the VO has idled for ten seconds, where DEAD_QUEUE is longer.
THROTTLE_DEFAULT_LIMIT | bool | false | | facts on throttling 7; decision C6
    Without NQUEUELIMIT four times what is made at once may always wait, and defined jobs do not make that smaller.
THROTTLE_BROKERAGE_STUCK | bool | false | | facts on throttling 7; decision C6
    No jobs are made while more than may wait are only defined.
THROTTLE_WAITING_JOBS | bool | false | | facts on throttling 7; decision C6
    No jobs are made while more wait to be defined than 4 x the running ones and 2 x what is made at once.
THROTTLE_SHORT_WORK | bool | false | | facts on throttling 7; decision C6
    Waiting jobs of 50,000,000 s of walltime together, or less, are not enough work.
THROTTLE_HIGH_PRIORITY | bool | false | | facts on throttling 7; decision C6
    Tasks, not of users, above every job of a unit get jobs nevertheless; NRUNNINGCAP holds for them too.
""")

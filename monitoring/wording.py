"""How states are shown: a symbol and a tone for the badge, and one sentence of help. A test holds that no state is without."""

from __future__ import annotations

from typing import NamedTuple

from workqueues.rules.task.state_sentences import TASK_SENTENCES


class Word(NamedTuple):
    """`tone`: idle, wait, run, good, part, bad or off; the symbol says the same without colour."""

    symbol: str
    tone: str
    help: str


def _table(text: str) -> dict[str, Word]:
    words = {}
    for line in text.strip().splitlines():
        name, tone, sentence = (cell.strip() for cell in line.split("|"))
        words[name] = Word(SYMBOLS[tone], tone, sentence)
    return words


SYMBOLS = {"idle": "○", "wait": "◷", "run": "▸", "good": "✓", "part": "◐", "bad": "✗", "off": "⊘"}

TASK_TONES = {
    "idle": "registered defined assigning ready topreprocess",
    "wait": "pending toretry toincexec rerefine throttled",
    "run": "scouting scouted running prepared preprocessing passed",
    "good": "done",
    "bad": "failed tobroken broken exhausted",
    "part": "finished",
    "off": "aborting aborted finishing paused",
}
TASK = {name: Word(SYMBOLS[tone], tone, TASK_SENTENCES[name]) for tone, names in TASK_TONES.items() for name in names.split()}

WORDS = {
    "task": TASK,
    "job": _table("""
pending      | idle | The job exists and is not defined yet.
defined      | idle | The job is defined and waits for its inputs to be arranged.
waiting      | wait | The job waits for a job that works on the same events.
assigned     | idle | The input of the job is moving to its queue.
throttled    | wait | The job is held back while its task is paused.
activated    | idle | The job waits for a pilot.
sent         | run  | A pilot has taken the job.
starting     | run  | The pilot prepares the job: it fetches the input.
running      | run  | The payload runs.
holding      | run  | The payload has ended; its result is being recorded.
transferring | run  | The outputs are moving to their destination.
merging      | run  | The outputs are being merged.
finished     | good | The payload ended well and its outputs are registered.
failed       | bad  | The job failed; its inputs are ready for another try, or were given up.
closed       | off  | The system ended the job without blaming it; its inputs are ready again.
cancelled    | off  | The job was killed on request.
"""),
    "transfer": _table("""
queued     | wait | The file waits for its turn, or for the next attempt.
submitting | run  | The file is being handed to what copies it.
submitted  | run  | The file is being copied.
done       | good | The file is where it was wanted.
failed     | bad  | It was given up: attempts failed, or no copy was left.
cancelled  | off  | Nobody wants it there any more, or an operator ended it.
"""),
    "element": _table("""
Available       | wait | It waits: any child broker that may have it can pull it. Its files are picked for it.
Negotiating     | run  | A child broker pulled it, and has not yet said that it has it. It comes back when the lease is over.
Acquired        | run  | A child broker has it and has made a task of it. None of its jobs has begun.
Running         | run  | The child's task has jobs. Files that end are settled here as the child reports them.
Done            | good | All of its files have ended. Some of them may have failed.
Failed          | bad  | All of its files have ended. None of them was processed well.
CancelRequested | off  | Its task was killed here. The child is told with its next report, and kills its own.
Canceled        | off  | It was cancelled. Files that had ended before stay as they were settled.
"""),
    "child": _table("""
pulls    | good | It was heard of lately, and may pull elements.
new      | idle | It was let in, and has not been heard of yet.
quiet    | bad  | It has not been heard of for longer than a lease: what it has comes back.
draining | wait | It gets nothing new; what it has goes on.
drained  | off  | Its time to drain is over: it gets nothing new, and what it still had was taken back.
revoked  | off  | Its token is good no longer: its messages are refused, and what it has comes back.
"""),
    "site": _table("""
Normal   | good | It takes new work.
Draining | wait | It ends what it has, and takes nothing new.
Down     | bad  | It runs nothing.
Aborted  | off  | It runs nothing, and what it had was given up.
"""),
    "copy": _table("""
available | good | It can be read.
deleting  | off  | It is about to be removed.
bad       | bad  | It is damaged, and not read.
"""),
    "wish": _table("""
open   | wait | The file is wanted there.
closed | idle | It was met, or nobody wants it any more.
"""),
    "dataset": _table("""
defined  | idle | Known to the task, not looked at yet.
ready    | idle | Its files may be used.
pending  | wait | The catalogue does not answer for it now.
toupdate | wait | Its files are to be read again.
broken   | bad  | It cannot be used.
running  | run  | Jobs write to it.
prepared | run  | All its files are written; it is about to be closed.
done     | good | Closed: nothing more happens with it.
done, empty | bad | Closed with no file in it: those that were to be made failed, or none was.
"""),
    "file": _table("""
ready    | idle | Free to be given to a job.
picked   | idle | Taken by a generator that makes jobs.
running  | run  | In a job.
partial  | part | Some of its events are done.
finished | good | Processed, or registered as an output.
failed   | bad  | Given up after its last try.
lost     | bad  | It vanished from the catalogue.
missing  | bad  | It was never there.
broken   | bad  | Its copies are damaged.
defined  | idle | Named, not written yet.
prepared | run  | Written, waiting to be merged.
merging  | run  | Being merged.
"""),
    "range": _table("""
ready     | idle | Its job waits for a pilot or runs.
sent      | run  | A pilot has it.
running   | run  | Its events are being processed.
finished  | run  | Processed, the end is being recorded.
done      | good | Its events are processed.
failed    | bad  | The job failed; the events were cut anew.
cancelled | off  | The job was ended; the events were cut anew.
fatal     | bad  | The events have no tries left.
discarded | off  | The result was thrown away.
merged    | good | Its output is part of a merged file.
corrupted | bad  | Its output could not be read.
"""),
    "queue": _table("""
online    | good | Takes jobs.
standby   | wait | Takes jobs only where a task names it.
brokeroff | off  | Takes no new jobs by itself; a task may name it.
test      | wait | Takes test jobs only.
offline   | off  | Takes no jobs.
paused    | off  | Takes no jobs; those it has are left alone.
"""),
    "agent": _table("""
well    | good | Its last run succeeded, and it is on time.
failing | bad  | Its last run failed; the next period tries again.
late    | wait | It has not succeeded for more than three periods: is a worker running?
off     | off  | Switched off in the configuration.
never   | idle | It has not run yet: is a worker running?
"""),
    "use": _table("""
live     | run  | In use by this job.
used     | good | Processed by this job.
returned | off  | Given back: another job may use it.
"""),
    "outcome": _table("""
assign  | good | The decision found candidates.
pending | wait | The decision found no candidate; the task waits.
"""),
    "pilot": _table("""
busy  | run  | It holds a job.
idle  | wait | It asked for a job in vain, and asks again.
quiet | idle | It was heard of in the last ten minutes, but neither holds a job nor waits for one.
gone  | off  | Nothing was heard of it for ten minutes.
"""),
    "throttle": _table("""
PASS | good | Jobs may be made for the unit.
SKIP | wait | No jobs are made for the unit now; the reason says why.
"""),
}

RAM_UNITS = {"MBPerCore": "MB a core", "MBPerCoreFixed": "MB a core, fixed"}
"""Unit of a task's memory, as tasks name it -> in words."""

UNKNOWN = Word("?", "idle", "A state that this page does not know.")

"""Commands on tasks: who may give each, which states take it, what it causes in the task's machine, and the words about it.

Permissions, REST routes with their OpenAPI, buttons of the pages, actions of the admin, and messages are made from COMMANDS. A
command's name is not an event's: a command may be taken in states where the event it stands for comes later or in another way.
Source: facts on task commands 2.2 and 2.3, decision D2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workqueues.rules.jobs.activity import activity_of
from workqueues.states import TASK


@dataclass(frozen=True, slots=True)
class Right:
    """A permission to command tasks: the roles in the task's VO that have it (`owner`: who owns the task, or submitted it for its
    owner), and who has not.
    """

    permission: str
    roles: frozenset[str]
    refusal: str
    """Follows "NAME is"; knows the task's `id` and `vo`."""


MORE_TRIES = 5
"""Tries that inputs get where nobody says how many (facts on task commands 2.5)."""

OWN_OR_OPERATED = Right(
    "task:command",
    frozenset({"owner", "operator"}),
    "neither the owner of task {id}, nor its submitter with the role production, nor an operator of {vo}",
)

TO_PAUSE = Right("task:pause", OWN_OR_OPERATED.roles, OWN_OR_OPERATED.refusal)

TO_SCALE_OUT = Right(
    "task:avalanche",
    frozenset({"operator", "production"}),
    "neither an operator of {vo}, nor has the role production there, as it takes to end the scouting of task {id}",
)
"""Scouts protect all others from the errors of one: their owner alone does not end them."""


TO_TRANSCEND = Right(
    "task:transcend",
    frozenset({"operator", "production"}),
    "neither an operator of {vo}, nor has the role production there, as it takes to retry task {id} beyond its limits",
)


@dataclass(frozen=True, slots=True)
class Option:
    """A yes or no that a command takes. `right`: needed besides that to the command, where it is not at its default."""

    name: str
    default: bool
    field_help: str
    sentence: str
    box: str
    """Name of the tick box of the page, which turns the default round."""
    box_label: str
    right: Right | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """The command, with these options, on all tasks that are selected in the admin."""

    name: str
    label: str
    options: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    right: Right
    states: tuple[str, ...]
    """Those that take it."""
    event: str
    """What it causes in TASK."""
    title: str
    before: str
    """What it will do: the first sentence of the interface's description."""
    during: str
    """Follows "Task 7 is" and "5 tasks are"."""
    after: str
    """What becomes of the task: the last sentence of the interface's description."""
    notice: str
    """What the page says of it before the button is pressed."""
    confirmed: bool
    """Whether the page shows the notice and asks for a comment first; otherwise the notice is the hint of the button."""
    actions: tuple[Action, ...]
    options: tuple[Option, ...] = ()
    changeable: bool = False
    """Whether parameters of the task may change with it; then it is carried out as an incremental execution."""
    frees: bool = False
    """Whether a task in quarantine takes it too, whatever state it is in, and goes on from there."""
    alive: tuple[str, ...] = ()
    """States in which a task of analysis takes it as one for its jobs, and goes on."""

    def suits(self, status: str, *, label: str, quarantined: bool) -> bool:
        """Whether a task with this source label takes it in this state."""
        return status in self.states or (self.frees and quarantined) or self.for_jobs(status, label)

    def for_jobs(self, status: str, label: str) -> bool:
        """Whether it concerns only the jobs of a task with this source label in this state."""
        return status in self.alive and activity_of(label) == "analysis"

    @property
    def taken_in(self) -> str:
        """The states that take it, for a refusal."""
        alive = f"; of tasks of analysis also in {', '.join(self.alive)}" if self.alive else ""
        return ", ".join(self.states) + alive

    @property
    def tries_again(self) -> bool:
        """Whether inputs of the task that were given up get more tries; limits of retries hold for it."""
        return self.event in ("reopen", "extend")

    @property
    def words(self) -> str:
        """Its name in a sentence."""
        return self.name.replace("_", " ")

    @property
    def target(self) -> str:
        """The state that it leads to; empty where that is the one from which the task came."""
        targets = {t.target for t in TASK.transitions if t.event == self.event}
        return targets.pop() if len(targets) == 1 else ""

    def kept(self, comment: str, options: Mapping[str, bool]) -> str:
        """What the task keeps of it: `soft finish: comment`, with the options that are on; the comment alone where there are none
        to choose."""
        if not self.options:
            return comment
        chosen = [o.name for o in self.options if options.get(o.name, o.default)]
        return ": ".join(filter(None, [" ".join([*chosen, self.name]), comment]))

    def rights_for(self, options: Mapping[str, bool]) -> list[Right]:
        """What it takes to give it with these options."""
        return [self.right, *(o.right for o in self.options if o.right and options.get(o.name, o.default) != o.default)]

    def has(self, option: str, kept: str) -> bool:
        """Whether the option was on when this was kept."""
        words = kept.partition(":")[0].split()
        return self.name in words and option in words[: words.index(self.name)]


SOLE = Option(
    "sole",
    default=False,
    field_help="leave the task's children alone",
    sentence="Sole leaves the children of the task alone; otherwise those that read its outputs, or wait for it, go on with it.",
    box="sole",
    box_label="Leave its children alone",
)
KEEP = Option(
    "keep",
    default=False,
    field_help="keep the priority and the share that the task has now",
    sentence="Keep lets it have the priority and the share that it has now; otherwise it gets those of its parameters.",
    box="keep",
    box_label="Keep priority and share",
)
STAGED = Option(
    "staged",
    default=False,
    field_help="do not wait for files that are to be staged from tape",
    sentence="Staged gives files that wait to be staged from tape to jobs as they are; otherwise they are waited for.",
    box="staged",
    box_label="Do not wait for tape",
)
TRANSCEND = Option(
    "transcend",
    default=False,
    field_help="whatever the limits of retries (component retry_task); takes the role production",
    sentence="A task beyond a limit of retries is exhausted instead, unless transcend is set, which takes the role production.",
    box="transcend",
    box_label="whatever the limits of retries",
    right=TO_TRANSCEND,
)

COMMANDS: Mapping[str, Command] = {
    command.name: command
    for command in (
        Command(
            "finish",
            OWN_OR_OPERATED,
            states=TASK.accepting("stop"),
            event="stop",
            title="Finish a task early",
            before="Make no more jobs and end with what is done.",
            during="being finished",
            after="It is finishing until the last job is gone; inputs that were not used are given up.",
            notice="No new jobs are made, and inputs that have not been used are given up. Running jobs end by themselves.",
            confirmed=True,
            actions=(
                Action("finish_softly", "Finish selected tasks when their running jobs have ended"),
                Action("finish_now", "Finish selected tasks now, stopping their jobs", {"soft": False}),
            ),
            options=(
                Option(
                    "soft",
                    default=True,
                    field_help="let running jobs end by themselves; false: stop them",
                    sentence="Soft (the default) lets running jobs end by themselves.",
                    box="hard",
                    box_label="Stop running jobs too",
                ),
            ),
        ),
        Command(
            "retry",
            OWN_OR_OPERATED,
            states=TASK.accepting("reopen"),
            event="reopen",
            title="Retry a task",
            before="Give the inputs that were given up as many tries more as the task began with.",
            during="being retried",
            after="It goes back to the first step that it had not passed; with nothing left to run it is what it was. "
            "One that was exhausted while it worked goes on as it did. "
            "One in quarantine, on which an agent failed too often, goes on where it was. "
            f"A task of analysis that is {', '.join(TASK.retried_alive)} goes on too: inputs that no job has get "
            f"{MORE_TRIES} tries more, and changes hold for jobs that are made from then on; `detail` says what happens.",
            notice="Inputs that were given up get more tries; a task in quarantine goes on.",
            confirmed=False,
            actions=(
                Action("retry", "Retry selected tasks"),
                Action("retry_beyond_limits", "Retry selected tasks whatever the limits of retries", {"transcend": True}),
            ),
            options=(SOLE, KEEP, STAGED, TRANSCEND),
            changeable=True,
            frees=True,
            alive=TASK.retried_alive,
        ),
        Command(
            "incexec",
            OWN_OR_OPERATED,
            states=TASK.accepting("extend"),
            event="extend",
            title="Run a task again on what is new in its input",
            before="Read the inputs again and run what is new in them, with what was given up, lost or not used.",
            during="being run again with new input",
            after="What was processed stays as it is; outputs go to the same datasets, and their numbers go on. "
            "With nothing new and nothing left it ends as it was.",
            notice="The inputs are read again: new files are added, and those that were given up or lost are tried again.",
            confirmed=True,
            actions=(Action("incexec", "Run selected tasks again on what is new in their input"),),
            options=(SOLE, KEEP, STAGED, TRANSCEND),
            changeable=True,
        ),
        Command(
            "reload_input",
            OWN_OR_OPERATED,
            states=TASK.accepting("extend"),
            event="extend",
            title="Read the input of a task again",
            before="Read the inputs again, as they are in the catalogue now, and run what is new in them or left.",
            during="being run again with new input",
            after="It is an incremental execution without changes; priority, share and children follow as they do there.",
            notice="New files of the inputs are added, and those that were given up or lost are tried again.",
            confirmed=False,
            actions=(Action("reload_input", "Read the input of selected tasks again"),),
        ),
        Command(
            "pause",
            TO_PAUSE,
            states=tuple(state for state in TASK.accepting("suspend") if state not in TASK.commanded),
            event="suspend",
            title="Pause a task",
            before="Make no more jobs, and hand out none of those that wait.",
            during="paused",
            after="Jobs that have begun go on to their end. It does nothing else until it is resumed, killed or finished.",
            notice="No new jobs are made and none that wait is handed out, until the task is resumed. Running jobs go on.",
            confirmed=True,
            actions=(Action("pause", "Pause selected tasks"),),
        ),
        Command(
            "resume",
            TO_PAUSE,
            states=TASK.resumable,
            event="continue",
            title="Resume a task",
            before="Let a task go on that is paused or throttled.",
            during="resumed",
            after="It is in the state that it had before, and its jobs that wait are handed out again.",
            notice="The task goes on where it was.",
            confirmed=False,
            actions=(Action("resume", "Resume selected tasks that are paused or throttled"),),
        ),
        Command(
            "avalanche",
            TO_SCALE_OUT,
            states=TASK.accepting("scouted"),
            event="scouted",
            title="End the scouting of a task",
            before="Make all jobs of a task now that is still measured by its first ones.",
            during="making all its jobs",
            after="Scouts go on to their end; what those that have finished showed is kept, and nothing more is judged.",
            notice="All jobs are made now, whatever the scouts that still run will show.",
            confirmed=True,
            actions=(Action("avalanche", "Make all jobs of selected tasks that scout"),),
        ),
        Command(
            "kill",
            OWN_OR_OPERATED,
            states=TASK.accepting("abort"),
            event="abort",
            title="Kill a task",
            before="End the task and all its jobs.",
            during="being killed",
            after="It is aborting until the last job is gone, then aborted; its children are killed too.",
            notice="All jobs of the task are stopped.",
            confirmed=True,
            actions=(Action("kill", "Kill selected tasks and all their jobs"),),
        ),
    )
}
"""In the order of the page's buttons."""

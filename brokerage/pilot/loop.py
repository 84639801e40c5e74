"""The pilot's life: register, clean up, ask for a job, run it, ask again, until told to stop."""

from __future__ import annotations

import contextlib
import fcntl
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from brokerage.pilot import journal, messages, processes, ticket
from brokerage.pilot.clocks import Wake, now
from brokerage.pilot.job import BadJob, Failure, Job, Ticket, read_job, read_ticket
from brokerage.pilot.joblog import Log
from brokerage.pilot.node import WorkFolder
from brokerage.pilot.payload import Keeper, end_leftovers
from brokerage.pilot.run import PilotPlace, Run, remove_folder
from brokerage.pilot.server import Answer, Server
from brokerage.pilot.ticket import Ask

CLEAN_EVERY_S = 1.0
"""How often, at most, the server is asked about journals of dead pilots."""
SLOT_PATIENCE_S = 2.0
"""How long the lock of a slot is waited for: the kernel frees that of a killed pilot at once."""
SHORTEST_LIFE_S = 60.0
"""A pilot with less of its walltime left asks for nothing more."""
STOP_GRACE_S = 1.0
ANSWER_S = 10.0
"""How long an answer may take beyond the wait that was asked for."""
LAST_JOB_S = 10.0
"""How long a pilot tries to tell of the job before it."""


class EnrolmentRefused(Exception):
    """The server will not have this pilot; the text says why."""


class SlotTaken(Exception):
    """Another living pilot holds the slot."""


@dataclass(frozen=True)
class Offer:
    """What the pilot offers and how long it stays: cores, MB, seconds; once = one job.

    Idle_exit_s = leave after that long without job.
    """

    queue: str
    enrolment_file: Path
    cores: int = 1
    memory_mb: int = 2000
    disk_mb: int = 5000
    walltime_s: float = 86400.0
    once: bool = False
    idle_exit_s: float | None = None
    submitted: messages.Submitted | None = None
    """The only job that it wants."""


class Pilot:
    """One slot of a computing queue."""

    def __init__(self, place: PilotPlace, offer: Offer, wake: Wake, log: Log) -> None:
        self.place, self.offer, self.wake, self.log = place, offer, wake, log
        self.server = Server(place.url, wake, log.say)
        self.keeper = Keeper(wake)
        self.folder = WorkFolder(place.work, offer.disk_mb, log.say)
        self.token = ""
        self.token_until = 0.0
        self.last_ask: Ask | None = None
        self.nothing = ""
        self.poll_s = 1.0
        self.long_poll_s = 0.0
        self.born = now()
        self.busy_at = self.born
        self.cleaned_at = float("-inf")

    def serve(self) -> None:
        """Work until told to stop, done with `once`, idle for too long, or at the end of the walltime.

        Raises EnrolmentRefused, SlotTaken.
        """
        processes.become_subreaper()
        self.place.work.mkdir(parents=True, exist_ok=True)
        with self._slot():
            self._clear()
            self._answer_for_last_job()
            while not self.wake.stopping and not self._over():
                if self.token_until < now():
                    self._register()
                self._clean()
                if not self._once():
                    break
        self.server.close()
        self.keeper.close()
        self.log.say("ends")

    def _once(self) -> bool:
        """Ask for a job and run it, or rest; False when the pilot shall end."""
        if self.last_ask is None and (rest := self.folder.rest_s()):
            self.wake.sleep(min(rest, max(0.0, self._patience())))
            return self._patience() > 0
        answer = self._match()
        if answer is None:
            return self._patience() > 0
        if answer.status == 200:
            self.nothing = ""
            self._take(answer)
            self.busy_at = now()
            return not (self.offer.once or self.offer.submitted or self.keeper.unkillable)
        if answer.status in (401, 403):
            self.log.say(f"match refused with status {answer.status}, registering again")
            self.token_until = 0.0
        elif answer.status != 204:
            self.log.say(f"match answered with status {answer.status}: {answer.body.get('detail', '')}")
        self._say_why_nothing(answer.nothing)
        if self.offer.submitted and answer.status not in (401, 403):
            return False  # the job is over, or another pilot's
        rest = self.poll_s if answer.retry_after is None else answer.retry_after
        if answer.status not in (204, 401, 403):
            rest = max(rest, 1.0)
        self.wake.sleep(min(rest * random.uniform(0.9, 1.1), max(0.0, self._patience())))  # noqa: S311 - jitter, no secret
        return self._patience() > 0

    def _say_why_nothing(self, reason: str) -> None:
        """Once for each reason in a row: a pilot asks every few seconds."""
        if reason and reason != self.nothing:
            self.log.say(f"got nothing: {reason.replace('_', ' ')}")
        self.nothing = reason or self.nothing

    def _patience(self) -> float:
        """Seconds until an idle pilot leaves."""
        return float("inf") if self.offer.idle_exit_s is None else self.busy_at + self.offer.idle_exit_s - now()

    def _life(self) -> float:
        return self.born + self.offer.walltime_s - now()

    def _over(self) -> bool:
        return self._life() < min(SHORTEST_LIFE_S, self.offer.walltime_s / 2)

    @contextlib.contextmanager
    def _slot(self) -> Iterator[None]:
        """Hold the lock of the work folder: one pilot per slot. The kernel frees the lock of a killed one."""
        with (self.place.work / "slot.lock").open("w", encoding="ascii") as file:
            limit = now() + SLOT_PATIENCE_S
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if now() > limit:
                        raise SlotTaken(f"another pilot works in {self.place.work}") from None
                    self.wake.wait(0.1)
            yield

    def _clear(self) -> None:
        """End and remove what an earlier pilot at this slot left."""
        ended = end_leftovers(self.place.slot, self.place.work, self.place.payload_uid)
        if ended:
            self.log.say(f"ended {len(ended)} processes that an earlier pilot left at this slot")
        for entry in list(self.place.work.iterdir()):
            if entry.name.startswith("job-"):
                remove_folder(entry)

    def _answer_for_last_job(self) -> None:
        """Tell the server at once of the job whose pilot was killed at this slot, instead of letting its lease run out."""
        last_job = ticket.left(self.place.work)
        if last_job is not None:
            self._give_back(last_job)
            ticket.drop_ask(self.place.work)  # this job was its answer
        ticket.drop(self.place.work)
        self.last_ask = None if self.offer.submitted else ticket.ask_left(self.place.work)

    def _give_back(self, held: Ticket) -> None:
        """End a job that an earlier pilot at this slot got; nothing of it is there any more."""
        failure = Failure("PILOT_STOPPED", "the pilot was killed; the next one at its slot tells of it")
        message = messages.report(held.id, failure)
        answer = self.server.ask(*message, held.token, deadline=now() + LAST_JOB_S, stop_grace_s=STOP_GRACE_S)
        recorded = "no answer" if answer is None else answer.body.get("status", f"refused with status {answer.status}")
        self.log.say(f"job {held.id}.{held.epoch} of an earlier pilot at this slot: {recorded}")

    def _register(self) -> None:
        """Get a pilot token; EnrolmentRefused when the server does not take the enrolment."""
        try:
            secret = self.offer.enrolment_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as problem:
            raise EnrolmentRefused(f"cannot read the enrolment secret: {problem}") from problem
        sent = now()
        message = messages.registration(self.offer.queue, self.place.slot, self._resources(), self.offer.submitted)
        answer = self.server.ask(*message, secret, deadline=self._deadline())
        if answer is None:
            return
        if answer.status not in (200, 201) or not answer.body.get("token"):
            raise EnrolmentRefused(f"registration refused with status {answer.status}: {answer.body.get('detail', '')}")
        self.token = str(answer.body["token"])
        self.token_until = sent + 0.9 * float(answer.body.get("expires_in") or 3600.0)
        self.poll_s = float(answer.body.get("poll_s") or 1.0)
        self.long_poll_s = float(answer.body.get("long_poll_s") or 0.0)
        self.log.say(f"registered as {answer.body.get('pilot_id')} for queue {self.offer.queue}")

    def _resources(self) -> messages.Resources:
        offer = self.offer
        return messages.Resources(offer.cores, offer.memory_mb, offer.disk_mb, max(1, int(self._life())))

    def _deadline(self) -> float | None:
        """How long a silent server is waited for."""
        return None if self.offer.idle_exit_s is None else max(self.busy_at + self.offer.idle_exit_s, now() + 5.0)

    def _match(self) -> Answer | None:
        if not self.token:
            return None
        if self.last_ask is not None:
            answer = self._ask(self.last_ask)
            if answer is None:
                return None
            self.last_ask = None
            if answer.status == 200:
                self.log.say("an earlier pilot at this slot asked for a job and did not hear the answer: it is taken now")
                return answer
        if self.offer.submitted:
            _, body = messages.match_submitted(replace(self._resources(), disk_mb=self.folder.disk_mb()), self.offer.submitted)
            return self._ask(Ask(self.token, body))
        wait_s = max(0.0, min(self.long_poll_s, self._patience(), self.token_until - now()))
        last = wait_s >= self._patience()
        _, body = messages.match(replace(self._resources(), disk_mb=self.folder.disk_mb()), wait_s, last=last)
        return self._ask(Ask(self.token, body))

    def _ask(self, ask: Ask) -> Answer | None:
        """The answer to an ask, which is written down until there is one: if this pilot is killed, the next one at the slot
        repeats it and gets the job that the server has given for it.
        """
        ticket.keep_ask(self.place.work, ask)
        patience = ANSWER_S + float(ask.body.get("wait_s") or 0.0)
        answer = self.server.ask(
            messages.MATCH, ask.body, ask.token, deadline=self._deadline(), attempt_s=patience, stop_grace_s=STOP_GRACE_S
        )
        if answer is not None and answer.status != 200:
            ticket.drop_ask(self.place.work)
        return answer

    def _take(self, answer: Answer) -> None:
        """Run the job of an answer."""
        document = answer.body.get("job")
        try:
            if not isinstance(document, dict):
                raise BadJob("no job in the answer")
            job = read_job(document)
        except BadJob as problem:
            self._refuse(document, str(problem))
            ticket.drop_ask(self.place.work)
            return
        held = Ticket(job.id, job.epoch, job.token)
        ticket.keep(self.place.work, held)
        ticket.drop_ask(self.place.work)
        if not self._fits(job):
            self._give_back(held)
            ticket.drop(self.place.work)
            return
        run = Run(job, self.place, self.server, self.keeper, self.wake, self.log)
        if not run.execute():
            self.token_until = 0.0  # the server may count the job as held by this pilot until its lease runs out
        self.folder.note_end(run.node_fault)
        if self.keeper.unkillable:
            self.log.say("something of the payload cannot be ended, this slot is not used any more")

    def _fits(self, job: Job) -> bool:
        """Whether this pilot offers what the job needs: an earlier one at the slot may have asked for it, with more to offer."""
        offer = self.offer
        sizes = ((job.cores, offer.cores), (job.memory_mb, offer.memory_mb), (job.disk_mb, offer.disk_mb))
        return all(need <= given or not given for need, given in sizes)

    def _refuse(self, document: object, problem: str) -> None:
        """Report a job whose description cannot be run."""
        self.log.say(f"cannot read the job: {problem}")
        with contextlib.suppress(BadJob):
            held = read_ticket(document if isinstance(document, dict) else {})
            message = messages.report(held.id, Failure("BAD_JOB", problem))
            self.server.ask(*message, held.token, stop_grace_s=STOP_GRACE_S)
        self.wake.sleep(self.poll_s)

    def _clean(self) -> None:
        """Remove outputs of dead pilots of this queue that were never settled."""
        if now() < self.cleaned_at + CLEAN_EVERY_S or not self.token:
            return
        for line in journal.clean(self.place.journal, self._outcomes):
            self.log.say(line)
        self.cleaned_at = now()

    def _outcomes(self, pairs: list[tuple[int, int]]) -> dict[tuple[int, int], str]:
        answer = self.server.ask(*messages.settled(pairs), self.token, deadline=now() + 10.0)
        if answer is None or answer.status != 200:
            return {}
        entries = answer.body.get("outcomes") or ()
        return {(int(entry["job_id"]), int(entry["epoch"])): str(entry["outcome"]) for entry in entries}

"""Files whose events jobs share: nobody's events are lost or processed twice, whatever becomes of the jobs (decision F2)."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from django.db import IntegrityError, transaction

from broker_site.foundation.agency.run import run_agent
from brokerage.queries.invariants import look
from brokerage.rules.dispatch.settlement import Ending, Report
from tests.cutting import Generator, Part, Shared, cut, end, shared
from workqueues.ledger.commands import command
from workqueues.ledger.events import drop, insert_ranges
from workqueues.ledger.moves import Stale
from workqueues.ledger.picking import give_back_picked
from workqueues.models import Dataset, EventRange, File, FileChange
from workqueues.queries.ranges import free_pieces
from workqueues.rules.jobs.event_ranges import DroppedEvents, InputFile, NewRange

pytestmark = pytest.mark.django_db


def faults() -> list[str]:
    """Violations of what must always hold."""
    return [f"{found.invariant.name}: {example}" for found in look() for example in found.examples]


def states(of: Shared) -> list[str]:
    """States of the ranges, in the order in which they were made."""
    return list(EventRange.objects.filter(task_id=of.task.id).order_by("id").values_list("status", flat=True))


def record(file: File) -> InputFile:
    """The file as a generator picks it."""
    return InputFile(file.id, file.dataset_id, file.lfn, n_events=file.n_events)


def free(of: Shared) -> list[tuple[int, int]]:
    """First event and number of the free pieces of the first file."""
    return [(piece.first, piece.n_events) for piece in free_pieces([record(of.file())])]


def counters(of: Shared) -> tuple[int, int, int, int]:
    """Files used, finished, failed, and events used."""
    d = Dataset.objects.get(id=of.dataset.id)
    return d.n_files_used, d.n_files_finished, d.n_files_failed, d.n_events_used or 0


def test_a_file_is_finished_when_all_its_events_are() -> None:
    of = shared([30])
    first, second, third = cut(of, 10)
    assert (of.file().status, of.file().job_id) == ("running", third)
    assert faults() == []
    end(first, "finished")
    end(third, "finished")
    assert (of.file().status, counters(of)) == ("running", (1, 0, 0, 20))
    end(second, "finished")
    assert (of.file().status, counters(of)) == ("finished", (1, 1, 0, 30))
    assert states(of) == ["done"] * 3
    assert faults() == []


def test_events_of_a_failed_job_are_cut_anew_in_other_sizes() -> None:
    of = shared([30])
    first, second, third = cut(of, 10)
    end(second, "failed")
    assert (of.file().status, free(of)) == ("ready", [(10, 10)])
    end(first, "finished")
    end(third, "finished")
    assert (of.file().status, counters(of)) == ("partial", (0, 0, 0, 20))
    assert faults() == []
    fourth, fifth, sixth = cut(of, 4)
    assert of.file().status == "running"
    spans = EventRange.objects.filter(id__gt=0, attempt_nr=2).order_by("id")
    assert [(r.job_id, r.def_min_event_id, r.def_max_event_id) for r in spans] == [
        (fourth, 10, 13),
        (fifth, 14, 17),
        (sixth, 18, 19),
    ]
    for job in (sixth, fourth, fifth):
        end(job, "finished")
    assert (of.file().status, counters(of)) == ("finished", (1, 1, 0, 30))
    assert faults() == []


def test_a_file_of_which_a_round_gives_only_some_events_is_ready_for_the_next() -> None:
    of = shared([30, 30])
    (first,) = cut(of, 10, most=1)
    assert (of.file(0).status, of.file(1).status, counters(of)[0]) == ("ready", "ready", 0)
    assert free(of) == [(10, 20)]
    assert faults() == []
    end(first, "finished")
    assert of.file(0).status == "partial"
    assert len(cut(of, 10)) == 5
    assert faults() == []


def test_ten_jobs_that_fail_once_each_do_not_use_up_their_file() -> None:
    of = shared([100], maxAttempt=2)
    for job in cut(of, 10):
        end(job, "failed")
    assert (of.file().status, of.file().attempt_nr, free(of)) == ("ready", 1, [(0, 100)])
    assert states(of) == ["failed"] * 10
    for job in cut(of, 50):
        end(job, "finished")
    assert (of.file().status, of.file().attempt_nr, of.file().failed_attempt) == ("finished", 2, 1)
    assert faults() == []


def test_events_without_tries_left_are_fatal_and_fail_their_file_when_the_others_are_through() -> None:
    of = shared([20], maxAttempt=2)
    good, bad = cut(of, 10)
    end(bad, "failed")
    (again,) = cut(of, 10)
    end(again, "failed")
    assert (of.file().status, free(of)) == ("running", [])
    assert states(of) == ["ready", "failed", "fatal"]
    end(good, "finished")
    assert (of.file().status, counters(of)) == ("failed", (1, 0, 1, 10))
    assert faults() == []


@pytest.mark.parametrize(("ending", "failures"), [("closed", 0), ("cancelled", 0), ("failed", 1)])
def test_only_failures_count_as_failures(ending: Ending, failures: int) -> None:
    of = shared([10])
    (job,) = cut(of, 10)
    end(job, ending)
    assert states(of) == ["failed" if failures else "cancelled"]
    assert (of.file().attempt_nr, of.file().failed_attempt, of.file().status) == (1, failures, "ready")
    assert faults() == []


def test_events_that_failed_too_often_are_given_up_though_tries_are_left() -> None:
    of = shared([10], maxAttempt=9, maxFailure=2)
    for ending in ("closed", "failed", "cancelled", "failed"):
        (job,) = cut(of, 10)
        end(job, ending)
    assert (of.file().status, of.file().attempt_nr, of.file().failed_attempt) == ("failed", 4, 2)
    assert states(of)[-1] == "fatal"
    assert faults() == []


def test_one_job_takes_the_end_of_a_file_and_the_beginning_of_the_next() -> None:
    of = shared([15, 15])
    generator = Generator(of)
    one, two = generator.pieces
    first, second = generator.give([Part(one, 0, 10)], [Part(one, 10, 15), Part(two, 0, 5)])
    generator.leave()
    assert (of.file(0).status, of.file(1).status) == ("running", "ready")
    end(second, "failed")
    assert (of.file(0).status, of.file(1).status) == ("ready", "ready")
    end(first, "finished")
    assert (of.file(0).status, of.file(1).status) == ("partial", "ready")
    assert faults() == []


def test_a_job_on_events_with_different_pasts_has_a_range_for_each() -> None:
    of = shared([20], maxAttempt=2)
    (job,) = cut(of, 10, most=1)
    end(job, "failed")
    generator = Generator(of)
    (piece,) = generator.pieces
    (both,) = generator.give([Part(piece, 5, 15)])
    generator.leave()
    assert list(EventRange.objects.filter(job_id=both).order_by("id").values_list("def_min_event_id", "attempt_nr")) == [
        (5, 2),
        (10, 1),
    ]
    assert faults() == []
    end(both, "failed")
    assert states(of) == ["failed", "fatal", "failed"]
    assert free(of) == [(0, 5), (10, 10)]
    assert faults() == []


def test_a_file_stays_picked_while_its_other_jobs_end() -> None:
    of = shared([30])
    first, second = cut(of, 10, most=2)
    generator = Generator(of)
    end(first, "failed")
    end(second, "finished")
    assert of.file().status == "picked"
    assert faults() == []
    generator.leave()
    assert (of.file().status, free(of)) == ("partial", [(0, 10), (20, 10)])
    assert faults() == []


def test_a_command_gives_back_what_a_generator_had_picked_as_the_generator_would() -> None:
    of = shared([30, 30])
    first, second = cut(of, 10, most=2)
    Generator(of)
    end(first, "failed")
    end(second, "finished")
    command(of.task.id, "kill", "user:ada")
    run_agent("command", looked=True)
    of.dataset.refresh_from_db()
    files = File.objects.filter(dataset=of.dataset).order_by("id")
    assert (list(files.values_list("status", flat=True)), of.dataset.n_files_used) == (["partial", "ready"], 0)
    assert faults() == []


def test_events_of_a_file_that_is_not_picked_are_not_given_out() -> None:
    of = shared([30])
    generator = Generator(of)
    give_back_picked(generator.run, of.task.id)
    with pytest.raises(Stale, match="no longer picked"):
        generator.give([Part(generator.pieces[0], 0, 10)])
    assert states(of) == []


def test_the_database_refuses_events_that_another_job_has() -> None:
    of = shared([30])
    cut(of, 10, most=1)
    with pytest.raises(IntegrityError, match="event_range_no_overlap"), transaction.atomic():
        insert_ranges(of.task.id, [NewRange(of.dataset.id, of.file().id, 7, 9, 2)])


def test_a_whole_file_that_no_job_will_take_is_given_up() -> None:
    of = shared([25, 3])
    generator = Generator(of)
    drop(generator.run, of.task.id, [DroppedEvents(of.file(1).id, 0, 0)], "too few files", "generate")
    generator.leave()
    assert ([of.file(n).status for n in (0, 1)], counters(of)) == (["ready", "failed"], (1, 0, 1, 0))
    assert faults() == []


def test_an_input_that_cannot_be_read_is_held_while_its_other_jobs_go_on() -> None:
    of = shared([30])
    first, second, third = cut(of, 10)
    end(first, "finished")
    end(second, "closed", Report("failed", missing_inputs=[of.file().lfn]))
    assert (of.file().status, of.file().held) == ("ready", "reported missing at ALPHA")
    assert FileChange.objects.filter(file_id=of.file().id, new="held").count() == 1
    end(third, "finished")
    assert of.file().status == "ready", "held: ready with a reason, not partial"
    assert faults() == []


def test_a_retry_gives_more_tries_to_events_that_were_given_up() -> None:
    of = shared([20], maxAttempt=1)
    good, bad = cut(of, 10)
    end(bad, "failed")
    end(good, "finished")
    run_agent("finish", looked=True)
    of.task.refresh_from_db()
    assert (of.task.status, of.task.error_dialog) == (
        "finished",
        "no file was processed whole, but 10 events of 1 file; 1 was given up",
    )
    _command(of, "retry")
    assert of.task.status == "ready"
    assert (of.file().status, of.file().max_attempt, free(of)) == ("partial", 2, [(10, 10)])
    assert faults() == []
    (again,) = cut(of, 10)
    end(again, "finished")
    assert (of.file().status, counters(of)) == ("finished", (1, 1, 0, 20))
    assert faults() == []


def test_finish_gives_up_the_events_that_no_job_has_had() -> None:
    of = shared([20, 20])
    (job,) = cut(of, 10, most=1)
    end(job, "finished")
    _command(of, "finish")
    assert of.task.status == "finished"
    assert [of.file(n).status for n in (0, 1)] == ["failed", "failed"]
    assert counters(of) == (2, 0, 2, 10)
    assert faults() == []
    _command(of, "retry")
    assert [of.file(n).status for n in (0, 1)] == ["partial", "ready"]
    assert faults() == []


def _command(of: Shared, name: str) -> None:
    """Command `name`, carried out, and the task ended if it is through."""
    command(of.task.id, name, "user:ada")
    for agent in ("command", "finish", "finish"):
        run_agent(agent, looked=True)
    of.task.refresh_from_db()


def test_events_that_no_job_will_take_are_given_up_with_the_reason() -> None:
    of = shared([25, 3])
    generator = Generator(of)
    long, short = generator.pieces
    drop(
        generator.run,
        of.task.id,
        [DroppedEvents(long.file_id, 20, 5), DroppedEvents(short.file_id, 0, 3)],
        "too few events",
        "generate",
    )
    assert (of.file(0).status, of.file(1).status, counters(of)) == ("picked", "failed", (2, 0, 1, 0))
    made = generator.give([Part(long, 0, 10)], [Part(long, 10, 20)])
    generator.leave()
    assert of.file(0).status == "running"
    for job in made:
        end(job, "finished")
    assert (of.file(0).status, counters(of)) == ("failed", (2, 0, 2, 20))
    assert list(FileChange.objects.order_by("file_id").values_list("new", "why")) == [
        ("dropped", "too few events"),
        ("failed", "too few events"),
    ]
    assert faults() == []


class Model:
    """What must come out, in memory: for each event of each file its tries, failures and what has it."""

    def __init__(self, sizes: list[int], max_attempt: int, max_failure: int | None) -> None:
        self.max_attempt, self.max_failure = max_attempt, max_failure
        self.tries = [[0] * n for n in sizes]
        self.failures = [[0] * n for n in sizes]
        self.owner: list[list[int | None]] = [[None] * n for n in sizes]
        self.done = [[False] * n for n in sizes]

    def given_up(self, f: int, e: int) -> bool:
        out = self.tries[f][e] >= self.max_attempt
        return out or (self.max_failure is not None and self.failures[f][e] >= self.max_failure)

    def free(self, f: int) -> list[int]:
        taken = zip(self.owner[f], self.done[f], strict=True)
        return [e for e, (owner, done) in enumerate(taken) if owner is None and not done and not self.given_up(f, e)]

    def give(self, job: int, spans: list[tuple[int, int, int]]) -> None:
        for f, first, stop in spans:
            for e in range(first, stop):
                assert e in self.free(f)
                self.owner[f][e] = job

    def end(self, job: int, ending: Ending) -> None:
        for f, owners in enumerate(self.owner):
            for e, owner in enumerate(owners):
                if owner == job:
                    owners[e] = None
                    self.done[f][e] = ending == "finished"
                    self.tries[f][e] += 1
                    self.failures[f][e] += ending == "failed"

    def status(self, f: int) -> str:
        live, done = any(owner is not None for owner in self.owner[f]), self.done[f]
        if self.free(f):
            return "partial" if any(done) and not live else "ready"
        return "running" if live else "finished" if all(done) else "failed"


@pytest.mark.parametrize("seed", range(6))
def test_a_random_walk_agrees_with_a_model_in_memory(seed: int) -> None:
    dice = random.Random(seed)
    sizes = [dice.randint(1, 40) for _ in range(3)]
    max_attempt, max_failure = dice.choice([(2, None), (3, 2), (4, 1)])
    of = shared(sizes, maxAttempt=max_attempt, maxFailure=max_failure)
    numbers = {of.file(n).id: n for n in range(3)}
    model = Model(sizes, max_attempt, max_failure)
    live: list[int] = []
    for _ in range(25):
        if live and dice.random() < 0.6:
            job = live.pop(dice.randrange(len(live)))
            ending: Ending = dice.choice(["finished", "failed", "closed", "cancelled"])
            end(job, ending)
            model.end(job, ending)
        elif any(model.free(n) for n in range(3)):
            live += _turn(of, dice, model, numbers)
        for n in range(3):
            file = of.file(n)
            assert file.status == model.status(n)
            past = Counter(zip(model.tries[n], model.failures[n], strict=True))
            assert file.attempt_nr == max(tries for tries, _ in past)
            assert file.failed_attempt == max(failures for _, failures in past)
            found = [e for p in free_pieces([record(file)]) for e in range(p.first, p.first + p.n_events)]
            assert found == model.free(n)
        assert counters(of)[3] == sum(sum(done) for done in model.done)
        assert faults() == []


def _turn(of: Shared, dice: random.Random, model: Model, numbers: dict[int, int]) -> list[int]:
    """A generator's turn with jobs of random sizes over some of the pieces: the new jobs."""
    generator = Generator(of)
    parts: list[Part] = []
    for piece in generator.pieces:
        at = 0
        while at < piece.n_events:
            size = dice.randint(1, 12)
            if dice.random() < 0.7:
                parts.append(Part(piece, at, min(at + size, piece.n_events)))
            at += size
    jobs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
    made = generator.give(*jobs) if jobs else []
    for job, taken in zip(made, jobs, strict=True):
        spans = [(numbers[p.piece.file_id], p.piece.first + p.skip, p.piece.first + p.upto) for p in taken]
        model.give(job, spans)
    generator.leave()
    return made

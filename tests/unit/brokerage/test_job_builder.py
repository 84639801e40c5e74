"""What each job gets: files and events of its inputs, tries, serial numbers, seeds, names and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.placement.distribution import Block
from brokerage.rules.placement.job_builder import JobBuilder, deal, dealt_files
from brokerage.rules.placement.new_job import DealtFiles, DealtJob, InputUse, JobOutput, NewJob, OutputName, PlacedJob, Seed
from brokerage.rules.placement.place_jobs import jobs_at_queue
from brokerage.rules.placement.slots import Slot
from brokerage.rules.placement.usable_input import UsableInput, columns_of
from tests.unit.brokerage.grids import ask, piloted
from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.jobs.event_ranges import Free, InputFile, Piece
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.generation import STANDARD, Generation
from workqueues.splitters.generator import GeneratorTask
from workqueues.splitters.protocol import Dropped, Files, JobPlan, Portion, Secondary, SecondaryFiles, SecondaryRow

SLOT = Slot(1, 2000, 500, 600)
IN, OUT, LOG, SEEDS = 7, 8, 9, 10
"""Datasets."""


class Master(NamedTuple):
    """The dataset from which jobs are cut."""

    type: str = "input"
    id: int = IN
    dataset_name: str = "mc.000123.evgen"
    stream_name: str = "IN"
    n_files: int = 0
    n_files_to_be_used: int = 0
    n_events: int | None = None


def file(number: int, lfn: str, attempt_nr: int = 0, job_id: int | None = None, **more: Any) -> InputFile:
    """A picked file of 1 GB and 100 events."""
    about = {"fsize": 10**9, "n_events": 100, "attempt_nr": attempt_nr, "job_id": job_id, **more}
    return InputFile(number, IN, lfn, **about)


def usable(files: Sequence[InputFile], rules: SplitRules, pieces: Sequence[Piece] | None = None, **more: Any) -> UsableInput:
    """Input that our own generator cuts."""
    columns = columns_of(files, pieces, complete=True, named=False)
    generation = Generation(STANDARD, GeneratorTask(1))
    return UsableInput(more.pop("dataset", Master()), rules, 200, files, pieces or (), columns, generation, **more)


def built(
    source: UsableInput, plans: Sequence[JobPlan], parameters: str = "", seeds: Sequence[Seed] = (), at: Sequence[str] = ("Q",)
) -> list[NewJob]:
    """The jobs of these plans, at these queues in turn; Q and R have logs of their own."""
    outputs = {
        queue: [
            JobOutput(OUT, "output", "mc._${SN}.root", "OUTPUT0", 41),
            JobOutput(LOG + n, "log", "mc._${SN}.log", "LOG0", 11),
        ]
        for n, queue in enumerate(("Q", "R"))
    }
    builder = JobBuilder(5, source, parameters, range(1000, 1000 + len(plans)), seeds, outputs)
    placed = [PlacedJob(3, at[i % len(at)], "DISK", plan, SLOT) for i, plan in enumerate(plans)]
    dealt, _ = deal(source, placed)
    return [builder.job(i, job, 77) for i, job in enumerate(dealt)]


def test_a_job_of_whole_files_has_them_with_their_tries_and_goes_on_from_their_last_jobs() -> None:
    source = usable([file(1, "a"), file(2, "b", 2, 90), file(3, "c", 1, 80)], SplitRules(files_per_job=3))
    (job,) = built(source, source.cut_anywhere().jobs, "--in ${IN} --out ${OUTPUT0} --try ${ATTEMPTNR}")
    assert job.inputs == [InputUse(1, IN, 0, True), InputUse(2, IN, 2, True), InputUse(3, IN, 1, True)]
    assert (job.attempt_nr, job.previous_jobs, job.ranges, job.kind) == (3, {80, 90}, [], JobKind.NORMAL)
    assert (job.id, job.task_queue_id, job.storage, job.slot, job.input_bytes) == (1000, 77, "DISK", SLOT, 3 * 10**9)
    assert job.outputs == [OutputName(OUT, "output", "mc._000041.root"), OutputName(LOG, "log", "mc._000011.log")]
    assert job.parameters == "--in a,b,c --out mc._000041.root --try 3"


def test_serial_numbers_count_on_over_all_queues_and_each_queue_has_its_own_datasets() -> None:
    source = usable([file(i, f"f{i}") for i in range(4)], SplitRules(files_per_job=1))
    jobs = built(source, source.cut_anywhere().jobs, "${SN/P}", at=("Q", "R"))
    assert [job.outputs[1] for job in jobs] == [OutputName(LOG + i % 2, "log", f"mc._0000{11 + i}.log") for i in range(4)]
    assert [job.parameters for job in jobs] == ["000041", "000042", "000043", "000044"]


def test_a_job_of_events_has_a_range_for_each_run_of_one_past() -> None:
    files = [file(1, "a", first_event=500), file(2, "b", 1, 60, n_events=0)]
    pieces = [Piece(1, 20, 80, (Free(20, 50, 1, 1, 70), Free(50, 100))), Piece(2, 0, 0)]
    source = usable(files, SplitRules(events_per_job=40), pieces)
    (job,) = built(source, [JobPlan(0, 2, skip=10)], "${SKIPEVENTS} ${FIRSTEVENT}")
    assert [(r.file_id, r.job_id, r.first, r.n_events, r.attempt_nr, r.failed_attempt) for r in job.ranges] == [
        (1, 1000, 30, 20, 1, 1),
        (1, 1000, 50, 50, 0, 0),
    ]
    assert job.inputs == [InputUse(2, IN, 1, True)]
    assert (job.attempt_nr, job.previous_jobs, job.parameters) == (2, {60, 70}, "30 530")


def test_seeds_go_to_jobs_in_their_order_and_count_no_try() -> None:
    source = usable([file(i, f"f{i}") for i in range(3)], SplitRules(files_per_job=1, random_seed=100))
    seeds = [Seed(60 + i, SEEDS, number, 2, 33) for i, number in enumerate((4, 9, 12))]
    jobs = built(source, source.cut_anywhere().jobs, "${RNDMSEED}", seeds)
    assert [job.parameters for job in jobs] == ["104", "109", "112"]
    assert [job.inputs[-1] for job in jobs] == [InputUse(60 + i, SEEDS, 2, True) for i in range(3)]
    assert [(job.attempt_nr, job.previous_jobs) for job in jobs] == [(1, set())] * 3


def test_numbered_records_stand_for_their_numbers() -> None:
    records = [file(1, "pseudo_000007", first_event=601)]
    source = usable(records, SplitRules(), dataset=Master("pseudo_input", stream_name="SEQNUMBER"))
    (job,) = built(source, [JobPlan(0, 1, n_events=100)], "${SEQNUMBER} ${FIRSTEVENT} ${MAXEVENTS}")
    assert job.parameters == "7 601 100"


def dealt_out(files: Sequence[InputFile], attributes: str, rows: Sequence[SecondaryRow], **more: Any) -> UsableInput:
    """Input with one secondary dataset."""
    secondary = Secondary(read_attributes(attributes), Files([row.id for row in rows]))
    return usable(files, SplitRules(), others=[SecondaryFiles(20, "IN2", secondary, rows)], **more)


def row(number: int, beside: tuple[int, int] | None = None, *, tracked: bool = True) -> SecondaryRow:
    return SecondaryRow(number, 20, f"s{number}", 5, 0, 1, 55, None, tracked, *(beside or ()))


def test_files_that_are_used_again_are_dealt_out_round_the_end() -> None:
    source = dealt_out([file(1, "a")], "ru", [row(i, tracked=False) for i in (21, 22)])
    plan = JobPlan(0, 1, others=(Portion(1, 3),))
    (job,) = built(source, [plan], "${IN2/L}")
    assert [use.file_id for use in job.inputs] == [1, 22, 21, 22]
    assert {use.tracked for use in job.inputs[1:]} == {False}
    assert (job.previous_jobs, job.attempt_nr, job.parameters) == (set(), 1, "s21,s22"), "a job goes on from those of its masters"
    assert (job.bound, dealt_files(source.others, [DealtJob(PlacedJob(3, "Q", "DISK", plan, SLOT))])) == ([], [DealtFiles(20, 3)])


def test_files_that_are_used_once_stand_beside_those_of_the_master_from_their_first_job_on() -> None:
    source = dealt_out([file(i, f"f{i}") for i in (1, 2, 3)], "", [row(21), row(22, (3, 0)), row(23)])
    plans = [JobPlan(0, 1, others=(Portion(0, 1),)), JobPlan(1, 3, others=(Portion(1, 2),))]
    jobs = built(source, plans, "${IN2/L}")
    assert [[use.file_id for use in job.inputs] for job in jobs] == [[1, 21], [2, 3, 23, 22]]
    assert [job.bound for job in jobs] == [[(21, 1, 0)], [(23, 2, 0)]]
    assert dealt_files(source.others, [DealtJob(PlacedJob(3, "Q", "DISK", plans[0], SLOT))]) == []


def test_what_each_job_has_once_stays_with_its_first_file_and_of_joined_jobs_the_lowest_counts() -> None:
    records = [row(21, (1, 0)), row(22, (2, 0)), row(23)]
    source = dealt_out([file(i, f"f{i}") for i in (1, 2, 3)], "np=1", records)
    one = (Portion(0, 1),)
    joined, alone = built(source, [JobPlan(0, 2, others=one), JobPlan(2, 3, others=one)])
    assert [job.inputs[-1].file_id for job in (joined, alone)] == [21, 23]
    assert (joined.bound, alone.bound) == ([], [(23, 3, 0)])


def test_where_events_are_cut_a_number_stays_with_the_event_at_which_its_job_began() -> None:
    pieces = [Piece(1, 0, 100, (Free(0, 100),))]
    source = dealt_out([file(1, "a")], "np=1", [row(21), row(22, (1, 40)), row(23)], pieces=pieces)
    one = (Portion(0, 1),)
    jobs = built(source, [JobPlan(0, 1, upto=30, others=one), JobPlan(0, 1, skip=30, upto=60, others=one)])
    assert [job.inputs[-1].file_id for job in jobs] == [21, 22]
    assert [job.bound for job in jobs] == [[(21, 1, 0)], []]


def test_no_job_gets_what_belongs_to_another_file() -> None:
    source = dealt_out([file(1, "a"), file(2, "b")], "np=1", [row(21, (2, 0))])
    placed = [PlacedJob(3, "Q", "DISK", JobPlan(i, i + 1, others=(Portion(0, 1),)), SLOT) for i in (0, 1)]
    dealt, reason = deal(source, placed)
    assert [each.job for each in dealt] == placed[1:]
    assert "belong to other files" in reason


@given(
    st.integers(0, 40), st.integers(1, 7), st.binary(min_size=40, max_size=40).map(lambda drawn: [tries % 4 for tries in drawn])
)
def test_every_file_is_in_exactly_one_job_and_every_name_is_given_once(n: int, per_job: int, tries: list[int]) -> None:
    source = usable([file(i, f"f{i:02}", tries[i]) for i in range(n)], SplitRules(files_per_job=per_job))
    jobs = built(source, source.cut_anywhere().jobs, at=("Q", "R"))
    assert [use.file_id for job in jobs for use in job.inputs] == list(range(n))
    assert len({(o.type, o.lfn) for job in jobs for o in job.outputs}) == 2 * len(jobs)
    assert [job.outputs[0].lfn for job in jobs] == [f"mc._{41 + i:06}.root" for i in range(len(jobs))]
    for job in jobs:
        assert job.attempt_nr == 1 + max(tries[use.file_id] for use in job.inputs)


@given(
    st.lists(st.lists(st.integers(1, 30), min_size=2, max_size=5), min_size=1, max_size=6),
    st.integers(1, 25),
)
def test_every_free_event_is_in_exactly_one_range(runs: list[list[int]], per_job: int) -> None:
    """Each file has a gap, then runs of different pasts that touch."""
    files, pieces = [], []
    for i, (gap, *lengths) in enumerate(runs):
        ends = [gap]
        for length in lengths:
            ends.append(ends[-1] + length)
        parts = tuple(Free(first, stop, tries) for tries, (first, stop) in enumerate(pairwise(ends)))
        files.append(file(i, f"f{i}", n_events=ends[-1]))
        pieces.append(Piece(i, gap, ends[-1] - gap, parts))
    source = usable(files, SplitRules(events_per_job=per_job), pieces)
    jobs = built(source, source.cut_anywhere().jobs)
    covered = [(r.file_id, event) for job in jobs for r in job.ranges for event in range(r.first, r.first + r.n_events)]
    assert covered == [(piece.file_id, event) for piece in pieces for event in range(piece.first, piece.first + piece.n_events)]
    assert all(sum(r.n_events for r in job.ranges) <= per_job for job in jobs)


def test_what_is_dropped_is_told_by_reason_as_events_or_as_a_whole_file() -> None:
    dropped = [Dropped(0, 5, 0, "short"), Dropped(1, 0, 4, "odd"), Dropped(1, 6, 0, "short")]
    files = [file(3, "a"), file(4, "b")]
    cut = usable(files, SplitRules(events_per_job=9), [Piece(3, 10, 20), Piece(4, 0, 8)])
    assert cut.dropped_events(dropped) == {"short": [(3, 15, 15), (4, 6, 2)], "odd": [(4, 0, 4)]}
    assert usable(files, SplitRules()).dropped_events(dropped[:1]) == {"short": [(3, 0, 0)]}


def test_jobs_for_a_part_of_a_unified_queue_are_made_at_the_whole() -> None:
    table = piloted([{"name": "Q/score", "unified_name": "Q", "storage": "Q_DISK", "corecount": 1, "maxrss": 2000.0}])
    block = Block("Q/score", (JobPlan(0, 2, size=10**9), JobPlan(2, 4, size=7 * 10**8)))
    jobs = jobs_at_queue(block, ask(ram_count=1950, ram_unit="MB"), table, {"Q": 12}, 1.0)
    assert [(job.queue_id, job.queue, job.storage, job.plan[:2]) for job in jobs] == [
        (12, "Q", "Q_DISK", (0, 2)),
        (12, "Q", "Q_DISK", (2, 4)),
    ]
    assert [(job.slot.ram_mb, job.slot.disk_mb) for job in jobs] == [(2000, 1000), (2000, 1000)]


def test_the_numbers_of_kinds_stay_as_they_stand_in_databases() -> None:
    assert {kind.label: kind.value for kind in JobKind} == {
        "normal": 0, "scout": 1, "build": 2, "preprocess": 3, "merge": 4, "event_service": 5, "es_merge": 6, "jumbo": 7,
        "cojumbo": 8,
    }  # fmt: skip

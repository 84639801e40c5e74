"""The parts of files of which lost outputs are made again."""

from __future__ import annotations

from workqueues.rules.jobs.event_ranges import Free, InputFile, Piece
from workqueues.rules.jobs.recovered_parts import WantedPart, parts_of_jobs

A, B, WHOLE = InputFile(1, 9, "a", boundary_id=4), InputFile(2, 9, "b", boundary_id=4), InputFile(3, 9, "c", boundary_id=5)
WANTED = {"a": [WantedPart(7, 0, 8, 10), WantedPart(4, 2, 2, 4)], "b": [WantedPart(7, 1, 0, 2)]}


def test_those_of_one_job_stand_together_in_its_order_and_files_without_parts_are_whole() -> None:
    assert [(part.job_id, part.piece) for part in parts_of_jobs([A, B, WHOLE], WANTED, {})] == [
        (4, Piece(1, 2, 2, (Free(2, 4),))),
        (5, Piece(3, 0, 0)),
        (7, Piece(1, 8, 2, (Free(8, 10),))),
        (7, Piece(2, 0, 2, (Free(0, 2),))),
    ]


def test_what_another_try_has_is_left_out_and_what_failed_tells_its_past() -> None:
    free = {1: [Free(0, 2), Free(8, 10, 1, 1, 77)]}
    assert [(part.job_id, part.piece) for part in parts_of_jobs([A], WANTED, free)] == [
        (7, Piece(1, 8, 2, (Free(8, 10, 1, 1, 77),)))
    ]

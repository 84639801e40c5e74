"""Generation: what making the jobs of a task costs beside COPY of the same rows.

Ours is the agent, from N ready files to N/5 activated jobs: files picked, queues decided, jobs cut, named and written, in
transactions of some thousand jobs. The reference writes exactly the same rows to the same tables by COPY, in transactions of the
same size, with the one set-based UPDATE of the files. Beside it: how much slower a job is than at 1e4 files, the peak memory of
the generator, and Django's bulk_create of the same rows at 1e4 files.
"""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cycle, generating
from benchmarks.crew import Crew
from benchmarks.harness import Lap, Line, add_rounds, compare, watched
from benchmarks.server import Bench, bench

SMALL = 10_000
"""Files of the runs with which a larger one is compared; those are repeated, a larger one takes minutes and is done once."""
QUEUES = 20


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--files", type=int, default=100_000, metavar="N", help="input files (default 100000)")
    add_rounds(parser, 5)


def run(options: Namespace) -> Iterator[Line]:
    """The small size and bulk_create, then the large size: the last line has the result."""
    with bench() as server, tempfile.TemporaryDirectory() as folder:
        cycle.fill_grid(QUEUES)
        generating.without_caps()
        with Crew(1, generating.Generator) as crew:
            legs = Legs(server, crew, Path(folder))
            small: Line = {}
            few = min(SMALL, options.files)
            for small in legs.compared(few, options.rounds):
                yield {**small, "name": f"generation at {few} files"}
            slow = generating.bulk_create(legs.task(few))
            yield {
                "name": "bulk_create",
                "rows_per_s": round(slow.per_s, 1),
                "times_slower": round(small["ours"] / slow.per_s, 1),
            }
            line: Line = small
            if options.files != few:
                for line in legs.compared(options.files, 1):
                    if "ratio" not in line:
                        yield line
            per_job = {"same_rate_as_1e4": round(line["ours"] / small["ours"], 3)} if few == SMALL else {}
            slower = round(small["ours"] / slow.per_s, 1)
            peak = round(crew.tell("peak_mb", None)[0])
            yield {
                **line,
                "files": options.files,
                **per_job,
                "bulk_create_slower": slower,
                "peak_memory_mb": peak,
            }


@dataclass(slots=True)
class Legs:
    """Both ways of making the jobs of a task; every round has tasks of its own."""

    server: Bench
    crew: Crew
    folder: Path
    _made: int = 0

    def task(self, files: int, status: str = "ready") -> generating.Place:
        """A new task whose input has so many files."""
        self._made += 1
        place = generating.fill(self._made, files, status)
        self.server.settle("workqueues_file", "workqueues_dataset", "brokerage_job", "brokerage_jobinput")
        return place

    def compared(self, files: int, rounds: int) -> Iterator[Line]:
        """Both legs in turn on so many files."""
        last: list[generating.Place] = []

        def ours() -> Lap:
            place = self.task(files)
            last[:] = [place]
            lap = watched(lambda: self.crew.do("generate", place.task_id), self.server.cpu_s)
            return generating.rows_of(lap, files)

        def reference() -> Lap:
            copies = generating.copies(last[0], self.task(files, "picked"), self.folder)
            with closing(self.server.connect()) as connection:
                lap = watched(lambda: generating.written(connection, copies), self.server.cpu_s)
            return generating.rows_of(lap, files)

        yield from compare("generation", "rows/s", ours, reference, {"files": files}, rounds, warm_up=int(files <= SMALL))

"""What counts as work of a job `j` with the specification `s`: input files and events, for whatever adds them up."""

from __future__ import annotations

from brokerage.rules.facts.job_kind import MERGING_KINDS

IS_WORK = f"j.kind NOT IN ({', '.join(str(kind.value) for kind in MERGING_KINDS)})"
"""What merging puts together was counted when it was made."""
INPUT_FILES = """greatest(0, s.n_input_files - (EXISTS (
    SELECT FROM workqueues_dataset d WHERE d.task_id = j.task_id AND d.type = 'random_seed'))::int)::bigint"""
"""Without the random seed that each job has where its task draws them: it is no file."""

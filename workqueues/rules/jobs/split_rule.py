"""The split rule of a task: one text of two-letter codes, and its meaning.

Format and codes: facts on task parameters 3.1, 3.2; TE, SI, SH, NU, RV, PD and PN (tgtNumEventsPerJob, skipShortInput,
skipShortOutput, nScouts, lostFiles, period, periodJobs) are ours.
A flag stands as `XX=1`; a code that is absent is off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

NO_SCOUTS, SCOUTS_FIRST, SCOUTS_OVER = 1, 2, 3
"""Values of the code US (facts on task parameters 3.2)."""

FAIL_BELOW_GOAL = "FG"
"""Code of a task that fails below its goal."""

HELD_UP = "WH"
"""Code of a task whose input is fed by a workflow (workflowHoldup)."""

NO_AUTO_FINISH = r"\mDF=1"
"""How the text of a task with disableAutoFinish looks, as the database searches for it."""

NO_AUTO_PAUSE = r"\mNP=1"
"""The same with noAutoPause."""
STEP = "UP"
"""Code of how far the preprocessing step is."""
TO_PREPROCESS, PREPROCESSED, FILLED_IN = 1, 2, 3
"""Its values: to be done, done, and the task refined with what it filled in (facts on task parameters 3.2)."""
SIZES = frozenset({"NF", "MF", "NE", "NG", "TE", "TN", "RL", "OL"})
"""Codes of what bounds a job as the task says."""

_RULE = re.compile(r"([A-Z]{2})=(-?\d+)")
_FIELDS = re.compile(r"AN=(\d+(?:,\d+)*)")


@dataclass(frozen=True, slots=True)
class SplitRules:
    """The rules that work today, read from the text; None or False where the task does not set them.

    `limited_sites`: 1 a list of queues to use, 2 one of queues to avoid, 3 both. `first_event` and `random_seed` are offsets.
    `input_lan`: input is read directly in the site where that is allowed (1), or only there (2); `input_wan`: also from other
    sites; `pre_staging`: it is staged from tape before jobs are made; `drop_staged`: what was staged goes at the end.
    `ip_connectivity`: full (1) or http (2); `ip_stack`: 4 or
    6. `boundary`: 1 to 4, how boundary ids of files bind jobs (facts on splitting 8.2).
    `name_fields`: which fields of the master's name, counted from 1, are `${MIDDLENAME}`; with `fields_of_file` of the first
    file's name. `instantiate`: outputs go to concrete datasets; with `instantiate_per_queue` to one for each computing queue.
    `stay_on_site`, `intermediate`: outputs are not collected at the nucleus. `use_scouts`: whether a few first jobs measure the
    task, or have done so; `n_scouts` of them, of which `scout_success_rate` tenths must succeed with `min_cpu_efficiency`
    percent; `target_output_gb`: nGBPerJob is then set so that the largest output of a job gets this size.
    `merge_output`: outputs are merged, so many files, events or GB in a job. `retry_ram_...`: memory after a job ran out of it.
    `run_until_closed`: new files of open inputs are
    used; `no_wait_parent`: so are those that a parent still writes, once there are enough for `chunks_to_wait` jobs, or one
    with `no_input_pooling`; with `release_per_lb` whole lumi blocks of them. `recovery`: it makes lost files of another task
    again. `held_up`: new files of all inputs are used, closed or not, until somebody says that they are complete.
    `disable_reassign`: no time limit takes its jobs back.
    `ignore_missing`: inputs that are deleted meanwhile are skipped. `period_s`: every so often `jobs_per_period` jobs are made.
    `preprocessing`: how far the step before all others is; 0: none.
    """

    files_per_job: int | None = None
    max_files_per_job: int | None = None
    events_per_job: int | None = None
    gb_per_job: int | None = None
    target_events: int | None = None
    boundary: int = 0
    max_walltime_h: int | None = None
    random_seed: int = 0
    first_event: int = 0
    limited_sites: int = 0
    max_core_count: int | None = None
    t1_weight: int = 0
    input_lan: int = 0
    input_wan: bool = False
    ip_connectivity: int = 0
    ip_stack: int = 0
    allow_empty_input: bool = False
    wait_input: bool = False
    no_retry: bool = False
    disable_reassign: bool = False
    fail_goal_unreached: bool = False
    use_exhausted: bool = False
    pre_staging: bool = False
    drop_staged: bool = False
    use_local_io: bool = False
    avoid_vp: bool = False
    only_tags_for_fc: bool = False
    respect_lb: bool = False
    order_by_lb: bool = False
    skip_short_input: bool = False
    skip_short_output: bool = False
    name_fields: tuple[int, ...] = ()
    fields_of_file: bool = False
    instantiate: bool = False
    instantiate_per_queue: bool = False
    stay_on_site: bool = False
    intermediate: bool = False
    use_scouts: int = NO_SCOUTS
    n_scouts: int | None = None
    respect_split_rule: bool = False
    min_cpu_efficiency: int = 0
    scout_success_rate: int = 0
    target_output_gb: int | None = None
    merge_output: bool = False
    files_per_merge_job: int | None = None
    max_files_per_merge_job: int | None = None
    events_per_merge_job: int | None = None
    gb_per_merge_job: int | None = None
    retry_ram_offset: int | None = None
    retry_ram_step: int | None = None
    retry_ram_max: int | None = None
    run_until_closed: bool = False
    no_wait_parent: bool = False
    no_input_pooling: bool = False
    chunks_to_wait: int | None = None
    release_per_lb: bool = False
    held_up: bool = False
    ignore_missing: bool = False
    recovery: bool = False
    period_s: int | None = None
    jobs_per_period: int | None = None
    preprocessing: int = 0

    @property
    def retry_ram(self) -> tuple[int, int, int] | None:
        """Offset, step and most of the memory after a failure, 0 where not said; None: by the ladder."""
        said = (self.retry_ram_offset or 0, self.retry_ram_step or 0, self.retry_ram_max or 0)
        return said if said[0] or said[1] else None

    @property
    def scouting(self) -> bool:
        """Whether the jobs that are made now are the scouts of the task."""
        return self.use_scouts == SCOUTS_FIRST

    @property
    def in_step(self) -> bool:
        """Whether the preprocessing step is not over: the only job that is made is its own."""
        return self.preprocessing == TO_PREPROCESS

    @property
    def sized(self) -> bool:
        """Whether the task says how many files or events a job takes."""
        return bool(self.files_per_job or self.events_per_job or self.target_events)

    @property
    def cutting(self) -> SplitRules:
        """Those by which jobs are cut now: a scout whose task does not say what it takes has one file, unless rules hold for
        scouts too.
        """
        if not self.scouting or self.sized or self.respect_split_rule or self.boundary:
            return self
        return replace(self, files_per_job=1)

    @property
    def output_stays(self) -> bool:
        """Whether outputs stay where they are made, whatever the nucleus."""
        return self.stay_on_site or self.intermediate


NUMBERS: Mapping[str, str] = {
    "NF": "files_per_job",
    "MF": "max_files_per_job",
    "NE": "events_per_job",
    "NG": "gb_per_job",
    "TE": "target_events",
    "GB": "boundary",
    "MW": "max_walltime_h",
    "RS": "random_seed",
    "FT": "first_event",
    "LS": "limited_sites",
    "CC": "max_core_count",
    "TW": "t1_weight",
    "IL": "input_lan",
    "IP": "ip_connectivity",
    "IK": "ip_stack",
    "US": "use_scouts",
    "NU": "n_scouts",
    "MC": "min_cpu_efficiency",
    "SS": "scout_success_rate",
    "TN": "target_output_gb",
    "ZF": "files_per_merge_job",
    "ZM": "max_files_per_merge_job",
    "ZE": "events_per_merge_job",
    "ZG": "gb_per_merge_job",
    "RX": "retry_ram_offset",
    "RY": "retry_ram_step",
    "RZ": "retry_ram_max",
    "NT": "chunks_to_wait",
    "PD": "period_s",
    "PN": "jobs_per_period",
    STEP: "preprocessing",
}
FLAGS: Mapping[str, str] = {
    "AE": "allow_empty_input",
    "WI": "wait_input",
    "DR": "no_retry",
    "DI": "disable_reassign",
    FAIL_BELOW_GOAL: "fail_goal_unreached",
    "UX": "use_exhausted",
    "IS": "pre_staging",
    "RD": "drop_staged",
    "IW": "input_wan",
    "LI": "use_local_io",
    "AV": "avoid_vp",
    "OT": "only_tags_for_fc",
    "RL": "respect_lb",
    "OL": "order_by_lb",
    "SI": "skip_short_input",
    "SH": "skip_short_output",
    "UF": "fields_of_file",
    "IT": "instantiate",
    "IA": "instantiate_per_queue",
    "SO": "stay_on_site",
    "IN": "intermediate",
    "RR": "respect_split_rule",
    "MO": "merge_output",
    "RC": "run_until_closed",
    "NW": "no_wait_parent",
    "NI": "no_input_pooling",
    "RP": "release_per_lb",
    "IM": "ignore_missing",
    HELD_UP: "held_up",
    "RV": "recovery",
}


def written(codes: Mapping[str, int | str]) -> str:
    """The text of the split rule; codes in the order given."""
    return ",".join(f"{code}={value}" for code, value in codes.items())


def changed(text: str, code: str, value: int) -> str:
    """The text with another value of one code."""
    if re.search(rf"\b{code}=", text):
        return re.sub(rf"\b{code}=-?\d+", f"{code}={value}", text)
    return ",".join(filter(None, [text, f"{code}={value}"]))


def without(text: str, code: str) -> str:
    """The text without one code."""
    return re.sub(rf"^{code}=-?\d+(?:,|$)|,{code}=-?\d+\b", "", text)


def rewritten(text: str, before: str, after: str) -> str:
    """The text with what differs between two others: everything else in it stays, whoever wrote that."""
    old, new = dict(_RULE.findall(before)), dict(_RULE.findall(after))
    for code in dict.fromkeys([*old, *new]):
        if code not in new:
            text = without(text, code)
        elif old.get(code) != new[code]:
            text = changed(text, code, int(new[code]))
    return text


@lru_cache(maxsize=4096)
def parse(text: str) -> SplitRules:
    """Read a split rule; codes without a meaning here are passed over."""
    codes = {code: int(value) for code, value in _RULE.findall(text)}
    numbers = {field: codes[code] for code, field in NUMBERS.items() if code in codes}
    flags = {field: codes.get(code, 0) > 0 for code, field in FLAGS.items()}
    listed = _FIELDS.search(text)
    fields = tuple(map(int, listed[1].split(","))) if listed else ()
    return SplitRules(**{**numbers, **flags, "name_fields": fields})  # type: ignore[arg-type]

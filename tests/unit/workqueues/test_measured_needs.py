"""What finished jobs show of the needs of their task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workqueues.config_keys  # noqa: F401 - declares the keys
from broker_site.foundation.gdpconfig.values import Config
from workqueues.rules.jobs.measured_needs import JobFigures, TaskNeeds, cpu_time, credible, measure, percentile, ram_count_by_rank
from workqueues.rules.jobs.split_rule import SplitRules, parse

CONFIG = Config().component("dbproxy")
JOB = JobFigures(
    1600, 8, 10, 1000, cpu_s=9000, max_pss_mb=9000, input_bytes=2e9, output_bytes=1e9, largest_output_bytes=5e8,
    read_bytes=3.2e9, written_bytes=1.6e9, work_mb=700,
)  # fmt: skip
PER_CORE = TaskNeeds(ram_unit="MBPerCore", base_ram_mb=1000)


def measured(*jobs: JobFigures, needs: TaskNeeds = PER_CORE, rule: str = "", **config: Any) -> dict[str, Any]:
    return measure(credible(jobs), needs, parse(rule), {**CONFIG, **config})


def test_each_column_by_hand() -> None:
    columns = measured(JOB)
    assert columns["ram_count"] == 1000  # (9000 - 1000) / 8
    assert columns["cpu_time"] == pytest.approx(1000 * 10 * 8 * 0.9 / 1000 * 1.5)
    assert columns["cpu_time_unit"] == "HS06sPerEvent"
    assert columns["io_intensity"] == pytest.approx(3e6 / 1600 / 8)
    assert columns["disk_io"] == pytest.approx(4.8e6 / 1600)
    assert columns["out_disk_count"] == 500  # kB for each of 2,000 MB
    assert columns["out_disk_unit"] == "kB"
    assert (columns["work_disk_count"], columns["work_disk_unit"]) == (700, "MB")
    assert columns["walltime"] == 7  # 9,000 s for 2,000 MB, x 1.5, rounded up
    assert "gb_per_job" not in columns


def test_the_size_of_a_job_follows_from_its_largest_output() -> None:
    assert measured(JOB, rule="TN=10")["gb_per_job"] == 60  # (2 + 1) GB x 10 / 0.5, and 0.7 of work
    assert measured(JOB, rule="TN=1000")["gb_per_job"] == 100
    assert "gb_per_job" not in measured(replace(JOB, largest_output_bytes=0), rule="TN=10")


def test_memory_by_percentile_has_a_margin() -> None:
    assert ram_count_by_rank([9000, 12000, 8000, 10000, 11000], 1000, 8, 75, 10) == pytest.approx(1375)  # 1250 + 10 %
    jobs = [replace(JOB, max_pss_mb=pss) for pss in (9000, 12000, 8000, 10000, 11000)]
    assert measured(*jobs)["ram_count"] == 1375  # the largest
    assert measured(*jobs, SCOUT_RAMCOUNT_METHOD="percentile", SCOUT_RAMCOUNT_MARGIN=20)["ram_count"] == 1500


def test_memory_of_the_whole_job_is_not_divided_and_never_below_the_least() -> None:
    assert measured(JOB, needs=TaskNeeds("MB"))["ram_count"] == 9000
    assert measured(replace(JOB, max_pss_mb=3), needs=TaskNeeds("MB"))["ram_count"] == CONFIG["SCOUT_RAMCOUNT_MIN"]


@pytest.mark.parametrize("unit", ["MBPerCoreFixed", "MBFixed"])
def test_fixed_units_keep_what_the_task_said(unit: str) -> None:
    columns = measured(JOB, needs=TaskNeeds(unit, cpu_time_unit="HS06sPerEventFixed"))
    assert not {"ram_count", "cpu_time", "walltime"} & set(columns)


def test_thousandths_stay_thousandths() -> None:
    assert measured(JOB, needs=TaskNeeds(cpu_time_unit="mHS06sPerEvent"))["cpu_time"] == pytest.approx(108_000)


def test_jobs_without_events_and_short_ones_say_nothing_of_an_event() -> None:
    assert cpu_time([replace(JOB, n_events=0)], 600, 90) is None
    assert cpu_time([replace(JOB, exec_s=500)], 600, 90) == 0
    assert "cpu_time" not in measured(replace(JOB, exec_s=500))


def test_larger_presets_of_disk_and_walltime_stay() -> None:
    columns = measured(JOB, needs=TaskNeeds(walltime=50, work_disk_mb=5000))
    assert columns["walltime"] == 50
    assert "work_disk_count" not in columns


@pytest.mark.parametrize("exec_s", [0, -5, float("nan"), float("inf"), 1e12])
def test_a_run_time_that_cannot_be_true_says_nothing(exec_s: float) -> None:
    assert measured(replace(JOB, exec_s=exec_s)) == {}


def test_nothing_measured_changes_little() -> None:
    bare = JobFigures(100.0)
    assert set(measured(bare)) == {"io_intensity", "io_intensity_unit"}


def test_percentile_interpolates() -> None:
    assert percentile([10, 20], 95) == pytest.approx(19.5)
    assert percentile([7], 95) == 7
    with pytest.raises(ValueError, match="no value"):
        percentile([], 50)


FIGURE = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 1e20))
FIGURES = st.builds(
    JobFigures,
    exec_s=st.floats(allow_nan=True, allow_infinity=True),
    cores=st.integers(0, 500),
    power=st.floats(0, 1000),
    n_events=st.integers(0, 10**9),
    cpu_s=FIGURE,
    max_pss_mb=FIGURE,
    input_bytes=st.floats(0, 1e18),
    output_bytes=st.floats(0, 1e18),
    largest_output_bytes=st.floats(0, 1e18),
    read_bytes=FIGURE,
    written_bytes=FIGURE,
    work_mb=FIGURE,
)


@given(st.lists(FIGURES, max_size=12), st.sampled_from(["MB", "MBPerCore"]), st.booleans())
def test_whatever_pilots_say_columns_can_hold_what_follows(jobs: list[JobFigures], unit: str, reads_files: bool) -> None:
    columns = measure(credible(jobs), TaskNeeds(unit, reads_files=reads_files), SplitRules(target_output_gb=10), CONFIG)
    for name, value in columns.items():
        if not name.endswith("unit"):
            assert 0 <= value < 2**31 if isinstance(value, int) else 0 <= value < float("inf"), (name, value)

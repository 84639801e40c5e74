"""What the payload of a job used over time, as its pilot measured it: memory, and cores that were busy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from brokerage.models import Job
from monitoring.plots import Curve, Plot

LEAST = 2
"""Steps of which something is drawn."""


def samples_of(job: Job) -> list[Plot]:
    """Of a job that ended; empty where its pilot told nothing, or the payload was over at once."""
    result, spec = getattr(job, "result", None), getattr(job, "spec", None)
    if result is None or result.start_time is None or not result.samples or len(result.samples["memory_mb"]) < LEAST:
        return []
    step_s, memory, cpu_s = (result.samples[name] for name in ("step_s", "memory_mb", "cpu_s"))
    times = _steps(result.start_time, step_s, len(memory))
    used = [Curve("used", "running", memory)]
    if spec is not None and spec.ram_mb:
        used.append(Curve("asked for", "target", [spec.ram_mb] * len(memory)))
    busy = [round(max(now - before, 0) / step_s, 2) for before, now in zip([0, *cpu_s], cpu_s, strict=False)]
    cores = [Curve("busy", "done", busy), Curve("of the job", "target", [job.core_count] * len(busy))]
    return [
        Plot("Memory", times, step_s, used, levels=True, of="MB"),
        Plot("Cores", times, step_s, cores, levels=True, of="cores"),
    ]


def _steps(start: datetime, step_s: int, n: int) -> Sequence[datetime]:
    """Beginnings of the steps, on whole multiples of their length, so that the axis has round times."""
    first = datetime.fromtimestamp(start.timestamp() // step_s * step_s, UTC)
    return [first + timedelta(seconds=i * step_s) for i in range(n)]

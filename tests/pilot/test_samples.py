"""What a payload used over time: few numbers that keep its peaks, however long it runs and however rarely somebody looked."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from brokerage.pilot.samples import MB, MOST, STEPS_S, Samples
from tests.pilot.conftest import Slot
from tests.pilot.peer import Peer


@given(st.lists(st.tuples(st.floats(0.1, 50_000), st.integers(0, 10**10), st.floats(0, 5)), min_size=1, max_size=80))
def test_samples_are_few_keep_the_peak_and_processor_time_never_falls(looks: list[tuple[float, int, float]]) -> None:
    samples, at, cpu_s = Samples(), 0.0, 0.0
    for pause, resident, used in looks:
        at, cpu_s = at + pause, cpu_s + used
        samples.note(at, resident, cpu_s)
    told = samples.as_report()
    assert len(told["memory_mb"]) == len(told["cpu_s"]) == int(at // told["step_s"]) + 1 <= MOST
    assert max(told["memory_mb"]) == max(round(resident / MB) for _, resident, _ in looks)
    assert told["cpu_s"][-1] == round(cpu_s)
    assert all(a <= b for a, b in pairwise(told["cpu_s"]))
    assert told["step_s"] in STEPS_S


def test_each_step_is_a_multiple_of_the_one_before() -> None:
    assert all(longer % step == 0 for step, longer in pairwise(STEPS_S))


def test_a_pilot_tells_what_its_payload_used_over_time(slot: Slot, peer: Peer) -> None:
    slot.program("busy.py", "import time\nkeep = bytearray(60_000_000)\nend = time.time() + 2.6\nwhile time.time() < end: pass")
    job = peer.offer("busy.py")
    assert slot.run() == 0
    samples = slot.report(job)["samples"]
    assert samples["step_s"] == 1
    assert 2 <= len(samples["memory_mb"]) <= 5
    assert max(samples["memory_mb"]) > 60
    assert samples["cpu_s"][-1] >= 1

"""What the end of a job that merges files means to each of these: it is merged, merged later, or given up.

Source: seed 001, "Output merging" (three tries at most); facts on workflows 7.1.9, 7.1.10; decision D8.
"""

from __future__ import annotations

from typing import Literal

from workqueues.rules.jobs.event_ranges import Outcome

MergeVerdict = Literal["merged", "again", "kept", "given_up"]
"""`again`: one try is over; `kept`: it was no try of this file."""


def merge_verdict(outcome: Outcome, tries: int, most: int, *, faultless: bool = False, killed: bool = False) -> MergeVerdict:
    """What becomes of a file with so many tries before, of `most`.

    `faultless`: the job could not read other files, and says nothing of this one; `killed`: somebody ended the job, and wants no
    other.
    """
    if outcome == "finished":
        return "merged"
    if killed:
        return "given_up"
    if outcome == "untried" or faultless:
        return "kept"
    return "given_up" if tries + 1 >= most else "again"

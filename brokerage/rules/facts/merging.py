"""What the brokers take an ask for when its jobs merge files: needs of their own, and a place to which they are bound.

Source: seed 000, candidates of production; facts on the brokerage 2.2, 2.3 rows 11 and 13.
"""

from __future__ import annotations

from dataclasses import replace

from brokerage.rules.facts.ask import Ask, Config

LEAST_MERGE_RAM_MB = 2000.0


def as_merging(ask: Ask, config: Config) -> Ask:
    """The ask as it is decided on. `config`: MERGE_PREASSIGNMENT, s.

    Files that earlier tries needed more memory for raise the memory. Merge jobs have the cores and the memory (plain MB) that the
    task gives for merging, and run where their files are until the queues there have been skipped for long.
    """
    chunk = ask.chunk
    if chunk.site and chunk.site_skipped_s >= config["MERGE_PREASSIGNMENT"]:
        ask = replace(ask, chunk=replace(chunk, site=None))
    if ask.merge and ask.merge_core_count is not None:
        ask = replace(ask, core_count=ask.merge_core_count)
    if ask.merge and ask.merge_ram_count:
        return replace(ask, ram_count=max(ask.merge_ram_count, chunk.ram_count or 0.0, LEAST_MERGE_RAM_MB), ram_unit="MB")
    if (chunk.ram_count or 0.0) > (ask.ram_count or 0.0):
        ask = replace(ask, ram_count=chunk.ram_count)
    return ask

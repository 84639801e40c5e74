"""Configuration keys of transfers: how many at a time, when again and when not, the mover, and cache copies."""

from __future__ import annotations

from broker_site.foundation.gdpconfig.table import declare_table
from brokerage.rules.transfers.backend_choice import no_backend

declare_table(
    """
[transfers]
TRANSFER_BACKEND | str | local | | decision I2
    What moves the files of a VO: `local` (directories and servers of ours), or the name that a plugin brings.
LINK_ACTIVE | int | 60 | 0..100000 | facts on data movement 5.5
    Transfers under way from one site to another at most, where the link has no limit of its own.
STORAGE_ACTIVE | int | 200 | 0..100000 | facts on data movement 5.5
    Transfers under way to a storage endpoint at most, and as many from it.
EXPRESS_SLOTS | float | 0.2 | 0..1 | facts on data movement 5.5
    The part of a link's transfers that only express ones take.
MAX_ATTEMPTS | int | 4 | 1..100 | facts on data movement 5
    A transfer has failed after so many attempts.
BACKOFF | duration | 2min | 0s..1d | facts on data movement 5.10
    How long it rests after its first failed attempt; twice as long after each further one, 20 % more or less.
BACKOFF_MAX | duration | 1h | 0s..7d | facts on data movement 5.10
    The longest rest between two attempts.
MAX_AGE | duration | 48h | 50ms..365d | facts on data movement 5
    A transfer that has been asked for so long ago and is queued is given up.
MAX_AGE_TAPE | duration | 7d | 50ms..365d | facts on data movement 5
    The same where its source is on tape.
CLAIM | duration | 2min | 50ms..1h | facts on data movement 5
    How long the agent may take to hand an attempt to its backend before that is done again, under the same key.
POLL | duration | 1min | 50ms..1h | facts on data movement 5
    How often a backend is asked for a transfer of which it told nothing.
UPKEEP | duration | 10s | 0s..1h | facts on data movement 5
    How often the agent looks for transfers that are silent or too old, and at those of links that cannot be used. 0: always.
REST | duration | 1min | 50ms..1d | facts on data movement 5.11
    How long a transfer rests whose source, destination or link cannot be used now.
SILENT_AFTER | duration | 1h | 50ms..7d | facts on data movement 5.10
    An attempt has failed that takes longer than this, and the time that its bytes take at SILENT_RATE.
SILENT_RATE | float MB/s | 1 | 0.001.. | facts on data movement 5.10
    The slowest copy that is waited for.
SILENT_MAX | duration | 24h | 50ms..30d | facts on data movement 5.10
    The longest time that is waited for an attempt.
LINK_WINDOW | duration | 30min | 50ms..7d | facts on data movement 5.10
    How long the attempts of a link are counted to judge it, and how long it has half of its transfers.
LINK_JUDGED_FROM | int | 20 | 1..100000 | facts on data movement 5.10
    A link with fewer attempts in that time is not judged.
LINK_FAILED_PART | float | 0.5 | 0..1 | facts on data movement 5.10
    A link has half of its transfers when a larger part of the attempts failed; once more, and it is blocked.
LINK_BLOCK | duration | 1h | 50ms..7d | facts on data movement 5.10
    How long it is blocked.
MOVER_STREAMS | int | 8 | 1..64 | decision I6
    Files that a mover copies at a time from one storage endpoint to another.
MOVER_CLAIM | duration | 30s | 500ms..1h | decision I6
    How long after a mover was last heard of another one may take over its copies.
MOVER_POLL | duration | 100ms | 5ms..1min | decision I6
    How often a mover without work looks for some.
READ_BACK | enum memory disk | memory | | decision I6
    Where a mover reads a copy back from before it gets its name: what the machine still has in memory, or the disk itself, which
    finds what a disk wrote wrongly, and takes each byte twice through it.
# Cache copies, figures of links, and how long ended transfers are kept.
ONETIME_LIFETIME | duration | 7d | 50ms..3650d | decision D13
    How long a copy that was brought for jobs is kept after its last use, unless its dataset is read many times (manytime).
GATHERED_LIFETIME | duration | 14d | 50ms..3650d | facts on data movement 3.1
    How long the copy of an output where it was made is kept once the output is where its dataset is collected.
WATERMARK | float GB | 250 | 0.. | decision I7
    Where a storage endpoint has less free space than this, cache copies that nobody needs are removed, those not used for the
    longest time first. A small endpoint keeps a tenth of its size free instead, where that is less.
WATERMARK_<storage> | float GB | unset | 0.. | decision I7
    WATERMARK of one storage endpoint, also of a small one.
REMOVAL_PATIENCE | duration | 30s | 50ms..4min | decision I6
    How long a storage endpoint may take to remove a batch of copies; one that takes longer is left, the others go on.
LINK_BACKLOG_SOURCE | enum own feed larger | larger | | decision I2
    What the brokerage takes as the files that wait on a link: those of our own transfers, those that a feed or document tells,
    or the larger number.
KEEP_ENDED | duration | 7d | 50ms..3650d | facts on data movement 5
    How long transfers are kept after their end, with their history and who wished them.
""",
    {"TRANSFER_BACKEND": {"known": no_backend}},
)

"""Keys of matching: which policy hands out jobs, and how it chooses."""

from __future__ import annotations

from functools import partial

from broker_site.foundation.gdpconfig.keys import Key, declare
from broker_site.foundation.gdpconfig.table import declare_table
from brokerage.rules.dispatch import policies
from brokerage.rules.dispatch.dispatch_policy import DISPATCH_POLICIES, unusable_dispatch_policy
from brokerage.rules.dispatch.share_correction import slice_faults

_policy = partial(Key, component="dispatch", type="str", low=1, high=100, source="decision H4", known=unusable_dispatch_policy)
declare(
    _policy(
        name="DISPATCH_POLICY",
        default=policies.Panda.name,
        doc=f"Which waiting job a pilot gets, for the jobs of a VO: {' or '.join(DISPATCH_POLICIES)}, or the policy of a plugin; "
        "while that cannot be loaded no jobs are handed out.",
    )
)
declare(_policy(name="DISPATCH_POLICY_<queue>", default=None, doc="The same for all that pilots of one computing queue get."))
declare_table(
    """
[dispatch]
HIGHEST_CPU_FIRST | bool | true | | seed 002
    Under `dirac`: of the task queues that suit a pilot only those of the highest class of CPU time take part.
PROPORTIONAL_CHOICE | bool | false | | issue Matching; facts on matching a5
    Under `dirac`: task queues are drawn in proportion to their priorities; else by RAND() / priority, which favours large ones.
REAL_PRIORITY | bool | false | | facts on matching a1
    Under `dirac`: a user priority of 10 and more weighs 1,000,000, of 0 and below 0.00001; else each weighs itself.
GROUP_SHARES_PERIOD | duration | 2min | 50ms..1h | facts on matching a7
    Under `dirac`: how often the priorities of task queues follow from the shares of their groups; those of new ones do at once.
SHARES_CORRECTION | json | [] | | facts on matching a7
    Under `dirac`: stretches of the past by which shares are corrected, a list of {"seconds": 604800, "weight": 80, "max": 2}: who
    used more than its share gets less, at most by `max`. Empty: shares are not corrected.
MAX_GLOBAL_CORRECTION | float | 5 | 1..1000 | facts on matching a7
    Under `dirac`: the most by which all stretches together correct a share.
STRICT_PLATFORM | bool | false | | decision H1
    A pilot that names no platform gets no job that asks for one; else it gets any.
BINDING | enum early late late_after | early | | row X4; decision H7
    When jobs get their queue, where the task does not say: early, when they are made; late, when a pilot of any queue that may
    run them asks; late_after, when they are made, and open to the other queues once they have waited.
BINDING_<activity> | enum early late late_after | unset | | row X4
    The same for the tasks of an activity: production, analysis or generic.
BINDING_AFTER | duration | 30min | 1s..30d | decision H7
    With late_after: how long jobs wait at their queue before the others may have them, where the task does not say.
EMPTY_TASK_QUEUE | duration | 5min | 1s..7d | facts on matching a8
    A task queue in which no job has waited for so long is removed, unless a job that has not ended was there.
""",
    {"SHARES_CORRECTION": {"check": slice_faults}},
)

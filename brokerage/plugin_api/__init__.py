"""What a package of brokerage rules imports of this app: its names stay when files inside the app move.

Here: how rules and policies are declared, what they read, and how a decision is tried in a test. Our own rules are in
`standard_filters` and `standard_weights` beside this file.
"""

from brokerage.rules.decision.declare import (
    Best,
    BrokeragePolicy,
    Criterion,
    Draw,
    Numbers,
    PendingFor,
    Verdicts,
    filter,
    filters,
    policy,
    weight,
)
from brokerage.rules.decision.pipeline import PolicyDecision, decide, skips
from brokerage.rules.decision.policy_config import gathered
from brokerage.rules.dispatch.dispatch_policy import FIRST_JOB, DispatchPolicy, JobWindow, Turn, dispatch_policy
from brokerage.rules.dispatch.waiting_list import Fitting, Unit, WaitingQueue
from brokerage.rules.facts.ask import Ask, Chunk, ChunkDataset, Config, as_merging
from brokerage.rules.facts.columns import Flags, Floats, Ints, Texts
from brokerage.rules.facts.snapshot import Nuclei, Queues

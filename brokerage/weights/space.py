"""How much room a nucleus has."""

from __future__ import annotations

from brokerage.rules.ask import Ask
from brokerage.rules.columns import Floats
from brokerage.rules.declare import Config, weight
from brokerage.rules.snapshot import Nuclei


@weight("free_space")
def free_space(_ask: Ask, nuclei: Nuclei, _config: Config) -> Floats:
    """Free and expired space of the default output storage, TB."""
    return nuclei.free_gb / 1000.0

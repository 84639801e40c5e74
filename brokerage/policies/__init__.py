"""One class per (VO, activity).

Ordered lists of rules that read like the page they implement. Importing this package declares ours.
"""

from brokerage.policies import analysis, generic, nucleus, production

__all__ = ["analysis", "generic", "nucleus", "production"]

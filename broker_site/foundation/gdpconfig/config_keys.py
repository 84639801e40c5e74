"""The keys of gdpconfig itself."""

from broker_site.foundation.gdpconfig.table import declare_table

declare_table("""
[gdpconfig]
CACHE_PERIOD | duration | 1s | 0s..2s | mission J28
    How long a process uses its copy of the configuration before it asks the database whether the revision has changed. A
    change of any key is seen everywhere after at most this time. 0 asks at every reading.
PROPOSAL_LIFETIME | duration | 7d | 1s..90d | decision L2
    How long a change that takes two people waits for the second one before it is given up.
""")

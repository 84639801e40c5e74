"""Configuration keys of the agents as such; those of each agent follow from the table of agents (`broker_site.roof`)."""

from broker_site.foundation.gdpconfig.table import declare_table

declare_table("""
[agents]
SET_ASIDE | duration | 1min | 50ms..1d | reliability R11
    How long a task is left alone on which an agent failed for the first time; twice as long after each further time in a row.
QUARANTINE_AFTER | int | 5 | 1..1000 | reliability R11
    So many failures of an agent on a task in a row, and no agent works on it until somebody retries it.
FORGET_PERIOD | duration | 1h | 1s..7d | mission U4
    How often the agent reap deletes credentials that expired long ago.
KEEP_EXPIRED | duration | 30d | 1h..3650d | mission U4
    How long an expired credential, such as that of a pilot, is kept to be looked up.
CLAIM | duration | 2min | 500ms..1h | reliability 4
    How long an agent run may hold a task before another may take it over.
LOOK_PAUSE | duration | 100ms | 1ms..1min | reliability 4
    An agent that was told of work is told again after so much time at the earliest: a thousand commits meanwhile are one run.
""")

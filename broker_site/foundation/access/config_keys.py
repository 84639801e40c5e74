"""Configuration keys of alerts."""

from broker_site.foundation.gdpconfig.table import declare_table

declare_table("""
[alerts]
SHARE_EDITS_FROM | int hour | 0 | 0..24 | reliability S32
    Shares and work queues are edited from this hour (UTC) on; an edit before is an alert.
SHARE_EDITS_TO | int hour | 24 | 0..24 | reliability S32
    Up to this hour (UTC); an edit after is an alert. 0 and 24: at any time.
""")

"""Configuration keys of alerts and of tokens."""

from broker_site.foundation.gdpconfig.table import declare_table

declare_table("""
[access]
TOKEN_REQUESTS_PER_MINUTE | int | 6000 | 0.. | ux.md
    Requests that a token of a user may make a minute, at all web processes; more get 429 with Retry-After. 0: any number.

[alerts]
SHARE_EDITS_FROM | int hour | 0 | 0..24 | reliability S32
    Shares and work queues are edited from this hour (UTC) on; an edit before is an alert.
SHARE_EDITS_TO | int hour | 24 | 0..24 | reliability S32
    Up to this hour (UTC); an edit after is an alert. 0 and 24: at any time.
""")

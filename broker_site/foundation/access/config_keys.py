"""Configuration keys of alerts, of tokens and of exports."""

from broker_site.foundation.gdpconfig.table import declare_table

declare_table("""
[access]
TOKEN_REQUESTS_PER_MINUTE | int | 6000 | 0.. | ux.md
    Requests that a token of a user may make a minute, at all web processes; more get 429 with Retry-After. 0: any number.
USER_REQUESTS_PER_MINUTE | int | 12000 | 0.. | ux.md
    Requests that all tokens of one user together may make a minute, so that more tokens give no more. 0: any number.
EXPORTS_PER_USER | int | 4 | 0..1000 | ux.md
    Lists as CSV that are sent to one user at once, at all web processes; one more gets 429 with Retry-After. 0: any number.
EXPORTS_AT_ONCE | int | 20 | 0..1000 | ux.md
    Lists as CSV that are sent at once, to all users; one more gets 503 with Retry-After. 0: any number.
EXPORT_TIME | duration | 1h | 1s..1d | ux.md
    An export that is not whole after so long is broken off, and says so in its last line.

[alerts]
SHARE_EDITS_FROM | int hour | 0 | 0..24 | reliability S32
    Shares and work queues are edited from this hour (UTC) on; an edit before is an alert.
SHARE_EDITS_TO | int hour | 24 | 0..24 | reliability S32
    Up to this hour (UTC); an edit after is an alert. 0 and 24: at any time.
""")

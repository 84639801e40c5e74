"""Times as in logs and history rows: ISO 8601, to the second, UTC."""

DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i:s"
DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"

"""ISO dates, as in commands and in the API; Django reads these names."""

DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = "Y-m-d H:i:s"

"""The forms of text of simulated schedules."""

# Pairs of a phrase and the cron line with the same meaning.
PHRASES = (
    ("every day at {h:02}:{m:02}", "{m} {h} * * *"),
    ("daily at {h12}:{m:02}{half}", "{m} {h} * * *"),
    ("every day at midnight", "0 0 * * *"),
    ("every day at noon", "0 12 * * *"),
    ("every weekday at {h:02}:{m:02}", "{m} {h} * * 1-5"),
    ("every monday", "0 9 * * 1"),
    ("every sunday at {h:02}:{m:02}", "{m} {h} * * 0"),
    ("every saturday and sunday at {h:02}:{m:02}", "{m} {h} * * 6,0"),
    ("every week", "0 9 * * 1"),
    ("weekly on fri at {h:02}:{m:02}", "{m} {h} * * 5"),
    ("every month on the 1st at {h:02}:{m:02}", "{m} {h} 1 * *"),
    ("every month on the last day at {h12} {half}", "0 {h} L * *"),
)
DAILY = (
    *("{m} {h} * * *", "{m} {h} * * 1-5", "{m} {h} * * mon,wed,SUN", "{m} {h} * 1-3,9-11 *"),
    *("{m} {h},{later} * * *", "{m} {h} ? * 6-7", "{m} {h} 1-31/2 * *", "@daily", "@midnight"),
)
SELDOM = (
    *("{m} {h} * * 0", "{m} {h} * * 7", "{m} {h} 1,15 * *", "{m} {h} L * *", "{m} {h} * * 5L"),
    *("{m} {h} * * sun#2", "{m} {h} * mar,oct sunL", "{m} {h} 13 * 5", "{m} {h} L 2-4 1"),
    *("{m} {h} 29 2 *", "{m} {h} 31 */2 *", "@weekly", "@monthly", "@yearly"),
    *("{m} {h} 22-31 3,10 *", "{m} {h} 1-8 4,9,11 *", "{m} {h} * 3,10 5-7"),
)
NIGHTLY = (
    *("{m}/20 0-3 * * 0", "0,30 0-4 * * sun", "*/20 {h} * * 0", "{m} */4 * * sun"),
    *("*/10 {h} 24-31 3,10 *", "*/3 {h} 1-7 4,11 0", "15,45 1-3 * * 6-7"),
)
OFTEN = (
    *("{m} * * 3,10 *", "{m} 9-17 * * 1-5", "*/15 8-18 * * 2", "{m} */2 * * mon,fri", "@hourly"),
    *("{m} * L * *", "*/5 {h} * * sun", "* {h} * * 0", "{m},30 9-17/4 * * *", "*/10 * 1 * *"),
)
SPANS = (
    *("90 minutes", "5 hours", "7 hours", "11 hours", "23 hours", "25 hours", "36 hours"),
    *("1441 minutes", "2 days", "3 days", "4 days", "10 days", "2 weeks", "100000 seconds"),
)
# Pairs of an interval and the duration of a run as a multiple of the interval.
PAUSES = (("5 hours", 0.01), ("11 hours", 1.7), ("2 days", 0.3), ("6 hours", 1.7), ("1 hours", 20))

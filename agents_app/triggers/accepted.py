"""Examples of every accepted form of a schedule; shown with each refusal."""

ACCEPTED_FORMS: tuple[tuple[str, ...], ...] = (
    ("in 30 minutes", "in an hour", "in 2 days"),
    ("at 17:00", "at 9am", "at 5 pm", "at noon", "at midnight", "today at 17:00"),
    ("tomorrow", "tomorrow at 09:00"),
    ("next monday", "next monday at 09:00"),
    ("on 2030-06-01", "on 2030-06-01 at 12:00"),
    ("2030-06-01T12:00", "2030-06-01T12:00:00Z", "2030-06-01T12:00+02:00"),
    ("every minute", "every hour", "hourly", "every 15 minutes", "every 30s", "every 2 days"),
    ("every day", "every day at 09:00", "every day at 9am and 5pm", "daily at 09:00"),
    ("every weekday at 09:00", "every monday", "every monday and friday at 09:00"),
    ("every week", "every week on monday at 09:00", "weekly on fri at 18:00"),
    ("every month on the 1st at 09:00", "every month on the last day"),
    ("15m", "1.5h"),
    ("0 9 * * 1-5", "@daily", "@reboot"),
    ("every day at 09:00 UTC", "every day at 09:00 Europe/Berlin"),
)
ACCEPTED = "\n".join(" | ".join(forms) for forms in ACCEPTED_FORMS)
EXAMPLES = '"every monday at 09:00", "in 30 minutes", "15m" or "0 9 * * 1-5"'

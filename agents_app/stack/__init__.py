"""Everything `manage.py up` starts and watches; no rule about agents or runs lives here."""

"""What the commands of `manage.py` share; no rule about agents or runs lives here."""

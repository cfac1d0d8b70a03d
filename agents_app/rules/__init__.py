"""`scheduler.rules`: one-line rules about the fleet, read, judged and obeyed every ten seconds."""

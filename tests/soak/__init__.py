"""Kills random processes of a stack under load, then compares answers with rows: `make soak`."""

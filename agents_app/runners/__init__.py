"""The ways to run a program."""

"""Functions that need Django; each call runs in a process with the settings of one stack."""

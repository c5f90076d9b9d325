"""Locate, write and read back the results of a run, with their origin: `places`, `write`, `origin`."""

"""Declare operators of integer sums that a target computes in few instructions: `pairs`, `quads`, `runs`."""

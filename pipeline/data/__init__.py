"""Samples of the user's own data, metrics over them, and the accuracy report of a library; pure numpy."""

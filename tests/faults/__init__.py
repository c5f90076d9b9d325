"""Faults of the machine, of other programs and of people; docs/reliability.md is made from the marks of all tests."""

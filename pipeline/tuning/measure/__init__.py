"""Measure schedules of one kernel, timed or counted: `HarnessFactory` chooses a `Harness`."""

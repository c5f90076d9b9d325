"""Tuning: the kernels that take longest, timed one by one, and better schedules for them than the rules' own."""

"""Choose a schedule per kernel: candidates by rule, tuned choices with specs, summaries shared for planning.

Public faces: `candidates.schedules`, `choices.schedule_choices`, `tuned.Tuning`, `summaries.ScheduleSummaries`.
"""

"""Tune layouts and kernel schedules by measurement: `tune_model.find_tuning`, `database`, `settings`."""

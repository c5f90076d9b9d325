"""Run steps as one streaming region, row by row: `region`, `best_partition`, `best_repeats`."""

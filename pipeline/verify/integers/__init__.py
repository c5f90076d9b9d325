"""Verify quantised models: a reference with exact integers, and models whose integers have to be equal."""

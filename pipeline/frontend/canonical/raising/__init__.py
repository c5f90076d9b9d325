"""Raise nodes of old operator sets to newer ones: the same results from today's forms."""

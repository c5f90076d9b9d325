"""Measurements of a program that links a library: time, instructions, energy."""

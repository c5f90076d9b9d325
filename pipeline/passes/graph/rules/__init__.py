"""Rewrite rules on the Relax graph: each replaces values by equal ones that cost less; `simplify` applies them all."""

"""Measure explicit and implicit effects of passes on a model: `effects.effects`, `relation.relation`."""

"""Refine finalists by order, sharing, splits and rematerialisation: `accept.refine_winner`, `levers.refine`, `Splitter`."""

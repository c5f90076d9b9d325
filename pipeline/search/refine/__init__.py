"""Refine finalists by order, sharing, splits and rematerialisation: `accept.accepted`, `levers.refine`, `Splitter`."""

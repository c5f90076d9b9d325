"""Knowledge that carries over between models: what was found on known ones, and what it lets expect of a new one.

    learn: explore a model ──► Record ──► knowledge.json          use: knowledge.json ──► coreset, ranking
"""

from .knowledge import Knowledge, load_knowledge

__all__ = ["Knowledge", "load_knowledge"]

"""Transfer knowledge between models: a coreset of sequences and a cost predictor, from records of known models.

Public faces: `Knowledge`, `load_knowledge`, and `explore.explore` to learn.

    learn: explore a model ──► ModelRecord ──► knowledge.json     use: knowledge.json ──► coreset, ranking
"""

from .knowledge import Knowledge, load_knowledge

__all__ = ["Knowledge", "load_knowledge"]

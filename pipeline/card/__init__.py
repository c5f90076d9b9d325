"""Say what a library is and where it comes from: a model card in Markdown and a CycloneDX ML-BOM, from a result.

Public faces: `read_facts`, `model_card`, `bill_of_materials`; `CARD` and `BOM` are the names of their files.
"""

from .bom import BOM, bill_of_materials
from .facts import Facts, read_facts
from .model_card import CARD, model_card

__all__ = ["BOM", "CARD", "Facts", "bill_of_materials", "model_card", "read_facts"]

"""Smallest graphs for the rules of combined and divided operators: changed, left alone, and the reason for each rule."""

from __future__ import annotations

from ..graphs import Example

EXAMPLES: dict[str, dict[str, Example]] = {}
TWINS: dict[str, dict[str, Example]] = {}
REASONS: dict[str, str] = {}

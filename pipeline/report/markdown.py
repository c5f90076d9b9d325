"""Escape text for Markdown."""

from __future__ import annotations

import re


def escaped(text: str) -> str:
    """Return `text` in one line, with nothing that Markdown, or HTML in it, reads as markup."""
    return re.sub(r"\s", " ", re.sub(r"([\\`*_{}\[\]<>|])", r"\\\1", text))

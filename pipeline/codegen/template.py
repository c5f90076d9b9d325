"""Render the C templates of a package folder."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .names import c_comment, c_float, c_string

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, folder: Path = Path(__file__).parent, **values: Any) -> str:
    """Render `template`, a file in `folder`, with `values`; a missing value is an error."""
    return _environment(folder).get_template(template).render(**values)


@lru_cache
def _environment(folder: Path) -> Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # C, not HTML; user text goes through c_comment
    )
    environment.filters["c_comment"] = c_comment
    environment.filters["c_float"] = c_float
    environment.filters["c_string"] = c_string
    return environment

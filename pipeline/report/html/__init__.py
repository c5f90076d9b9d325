"""Write results as pages of HTML, which need no network: `page`, and that of their passes, `passes_page`."""

from .page import page, passes_page

__all__ = ["page", "passes_page"]

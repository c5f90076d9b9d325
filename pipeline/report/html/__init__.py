"""Write results as one page of HTML, which needs no network: `page`."""

from .page import page

__all__ = ["page"]

"""Write docs/reliability.md."""

from .table import PAGE, page

PAGE.write_text(page(), encoding="utf-8")

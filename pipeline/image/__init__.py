"""Link a library into an image for a device without an operating system: `link_image`, `Image`, `BOARD_FILES`."""

from .link_image import BOARD_FILES, Image, link_image

__all__ = ["BOARD_FILES", "Image", "link_image"]

"""Link a library into an image for a device without an operating system: `link_image`, `Image`."""

from .link_image import Image, link_image

__all__ = ["Image", "link_image"]

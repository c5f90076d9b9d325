"""Hand a library over as a folder that a build system takes: `write_package`, `check_kind`."""

from .kinds import KINDS, check_kind
from .write import write_package

__all__ = ["KINDS", "check_kind", "write_package"]

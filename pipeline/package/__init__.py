"""Hand a library over as a folder that a build system takes: `write_package`, `check_folder`."""

from .earlier import check_folder
from .kinds import KINDS
from .write import write_package

__all__ = ["KINDS", "check_folder", "write_package"]

"""Keep files by the sha256 of their content, indexed by source; safe across processes.

<root>/index.json             {"pypi:PACKAGE==VERSION!member": "<sha256>", …}
<root>/<sha256>.onnx
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from ...errors import ModelError, OutputError
from ...support.digests import digest_of
from ...support.temporary_folder import temporary_folder
from .side_files import side_files


def default_cache() -> Path:
    """Return `$PASSFIT_CACHE`, else `~/.cache/passfit/models`."""
    chosen = os.environ.get("PASSFIT_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "passfit" / "models"


class Cache:
    """Folder of files by content; a file with other bytes than its name says is fetched again."""

    def __init__(self, root: Path):
        self._root = root
        self._index = root / "index.json"

    def get(self, source: str, fetch: Callable[[Path], None]) -> Path:
        """Return the cached file of `source`; `fetch(path)` writes it if it is missing or damaged."""
        import filelock

        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(self._root / ".lock"):
                return self._find(source) or self._add(source, fetch)
        except OSError as error:
            raise OutputError(
                f"The model cache '{self._root}' cannot be used: {error.strerror or error}.",
                "Set PASSFIT_CACHE to a folder you can write to.",
            ) from error

    def _find(self, source: str) -> Path | None:
        digest = self._read_index().get(source)
        if digest is None:
            return None
        path = self._root / f"{digest}.onnx"
        # an older passfit kept models without their side files
        return path if path.is_file() and digest_of(path) == digest and not side_files(path) else None

    def _add(self, source: str, fetch: Callable[[Path], None]) -> Path:
        with temporary_folder(self._root, ".new-") as folder:
            new = folder / "model.onnx"
            fetch(new)
            if new.stat().st_size == 0:
                raise ModelError(f"The file of '{source}' is empty.", "Choose another file or version.")
            digest = digest_of(new)
            path = self._root / f"{digest}.onnx"
            os.replace(new, path)
            index = folder / "index.json"
            index.write_text(json.dumps(self._read_index() | {source: digest}, indent=2, sort_keys=True) + "\n")
            os.replace(index, self._index)
        return path

    def _read_index(self) -> dict[str, str]:
        """Read the index; an unreadable one counts as empty, since every entry can be fetched again."""
        try:
            index = json.loads(self._index.read_text())
        except (FileNotFoundError, json.JSONDecodeError, UnicodeDecodeError):
            return {}
        return index if isinstance(index, dict) else {}

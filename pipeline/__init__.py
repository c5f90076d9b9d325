"""Compile ONNX models into C libraries that fit a device, by orchestrated compiler passes, and prove it.

Public names load on first use: TVM and MLflow take seconds to import. Type checkers read them in __init__.pyi. See docs/python-api.md.
"""

from __future__ import annotations

from typing import Any

_PUBLIC = {
    "Budget": "memory.footprint",
    "Footprint": "memory.footprint",
    "FootprintReport": "memory.footprint",
    "Measured": "memory.footprint",
    "PassfitError": "errors",
    "RunnableLibrary": "notebook",
    "Target": "targets",
    "compile": "notebook",
    "compile_model": "api",
    "fit_targets": "notebook",
    "get_target": "targets",
    "learn": "api",
    "load": "notebook",
    "optimize": "api",
    "profile": "api",
}

__all__ = [
    "Budget", "Footprint", "FootprintReport", "Measured", "PassfitError", "RunnableLibrary", "Target", "compile",
    "compile_model", "fit_targets", "get_target", "learn", "load", "optimize", "profile",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'passfit' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f".{_PUBLIC[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]

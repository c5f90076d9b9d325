"""Hold the `passfit` command: parse arguments, call the api, print tables. Public face: `main`."""

from .app import main

__all__ = ["main"]

"""Parse arguments, call the api, print a table: the `passfit` command."""

from .app import main

__all__ = ["main"]

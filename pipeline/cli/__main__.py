"""Run `python -m passfit.cli`."""

from .app import main

main()

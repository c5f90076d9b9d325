"""Run `python -m passfit.cli`."""

from . import main

main()

"""How many random examples hypothesis makes, and which: the same ones by default, new and more of them at night."""

from __future__ import annotations

from hypothesis import settings

DEFAULT, NIGHTLY = "passfit", "nightly"
#: how many times the number of examples that a test names a night makes
MORE = 5


def register() -> None:
    """Register both profiles and load the default one; `--hypothesis-profile nightly` takes the other instead."""
    # A busy machine is not a failure, so there is no deadline. By default the same examples everywhere, so that CI says
    # what a desk says.
    settings.register_profile(DEFAULT, max_examples=25, deadline=None, derandomize=True)
    settings.register_profile(NIGHTLY, max_examples=50 * MORE, deadline=None, derandomize=False, print_blob=True)
    settings.load_profile(DEFAULT)


def examples(count: int) -> int:
    """Return the number of examples of a test that names `count`, since each takes long.

    By default a quarter of it, and two of three to eight.
    """
    if settings.get_current_profile_name() == NIGHTLY:
        return count * MORE
    return max(-(-count // 4), min(2, -(-count // 2)))

"""Test the reason a shared library does not load, found in another process than the test's."""

from __future__ import annotations

import pytest

from passfit.codegen.check_loads import EXPORTS, why_not_loadable

from ..shared_libraries import shared_library

pytestmark = pytest.mark.slow
FIVE = "".join(f"void two_{name}(void) {{}}\n" for name in EXPORTS)
MISSING = "int nowhere(void);\nint uses(void) { return nowhere(); }\n"
CRASHING = "__attribute__((constructor)) static void crash(void) { __builtin_trap(); }\n"


@pytest.mark.parametrize(
    "source, reason",
    [
        (FIVE, None),
        (FIVE + MISSING, "undefined symbol: nowhere"),
        (FIVE.replace("two_run", "two_walk"), "undefined symbol: two_run"),
        (FIVE + CRASHING, "SIG"),
    ],
)
def test_a_library_loads_with_all_its_functions_or_the_reason_is_given(tmp_path, source, reason):
    found = why_not_loadable(shared_library(source, tmp_path / "libtwo.so"), "two")
    assert (found is None) if reason is None else (reason in found and str(tmp_path) not in found)


@pytest.mark.parametrize("content", [b"", b"text", b"\x7fELF"])
def test_a_file_that_is_no_library_has_a_reason(tmp_path, content):
    (tmp_path / "libtwo.so").write_bytes(content)
    found = why_not_loadable(tmp_path / "libtwo.so", "two")
    assert found and "Traceback" not in found and str(tmp_path) not in found

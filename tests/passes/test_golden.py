"""Compare the module before and after each pass, as text, with tests/golden.

`PASSFIT_WRITE_GOLDEN=1 pytest tests/passes/test_golden.py` writes the files again; read the difference before keeping
it. They hold what TVM of the pinned version prints.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.tvm
GOLDEN = Path(__file__).parents[1] / "golden"

#: the keys of graphs.EXAMPLES, which imports TVM
SPECS = (
    "adjust-matmul-order", "canonicalize-bindings", "dead-code-elimination",
    "decompose-ops-for-inference", "distribute-loops", "distribute-loops{trips=2}", "eliminate-common-subexpr", "fast-math", "fold-batchnorm-to-conv2d",
    "fold-constant", "fold-constant{grow=0}", "fuse-by-mapping", "fuse-by-mapping{objective=latency}", "fuse-operators", "fuse-operators{depth=2}", "fuse-operators{keep=1}",
    "fuse-operators{over=pooling}", "fuse-operators{over=reduction}", "fuse-transpose-matmul", "legalize",
    "remove-redundant-reshape",
    "simplify", "split-heads", "to-mixed-precision", "to-mixed-precision{sum=float16}",
)  # fmt: skip


def script(module: object) -> str:
    """The module as TVMScript, without the lines on how to read it back."""
    text = module.script(show_meta=False)
    return re.sub(r"\A(#.*\n|\n)+", "", text).strip() + "\n"


def _file(spec: str) -> Path:
    return GOLDEN / (re.sub(r"[^a-z0-9]+", "-", spec).strip("-") + ".txt")


def test_every_module_pass_has_an_example():
    from passfit.passes.base import ModulePass
    from passfit.passes.graph.rules.rule import Rule
    from passfit.passes.sequence.catalogue import CATALOGUE

    from .graphs import EXAMPLES

    assert tuple(sorted(EXAMPLES)) == SPECS
    # rules have examples of their own, in tests/passes/rules
    module_passes = {
        name for name, kind in CATALOGUE.items() if issubclass(kind, ModulePass) and not issubclass(kind, Rule)
    }
    assert {spec.split("{")[0] for spec in SPECS} == module_passes
    assert {file.name for file in GOLDEN.glob("*.txt")} == {_file(spec).name for spec in SPECS}


@pytest.mark.parametrize("spec", SPECS)
def test_the_pass_does_what_is_written_down(spec: str):
    from passfit.passes.sequence.catalogue import parse_spec

    from .graphs import EXAMPLES, applied

    module = applied(EXAMPLES[spec])
    before = script(module)
    after = script(parse_spec(spec).apply(module))
    assert script(module) == before, "a pass leaves its argument as it was"
    text = f"==== before {spec} ====\n{before}==== after ====\n{after}"
    if os.environ.get("PASSFIT_WRITE_GOLDEN"):
        _file(spec).write_text(text, encoding="utf-8")
    assert before != after
    assert text == _file(spec).read_text(encoding="utf-8")

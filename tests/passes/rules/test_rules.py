"""Each rule of the book does what is written down, keeps the numbers, and leaves its twins alone.

`PASSFIT_WRITE_GOLDEN=1 pytest tests/passes/rules` writes tests/golden/rules again; read the difference before keeping it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from passfit.passes.graph.rules.book import RULES

pytestmark = pytest.mark.tvm
GOLDEN = Path(__file__).parents[2] / "golden" / "rules"
REBENCH = next((found for each in Path(__file__).parents if (found := each / "shared" / "rebench").is_dir()), None)
NAMES = [rule.name for rule in RULES]


@pytest.mark.parametrize("name", NAMES)
def test_the_rule_does_what_is_written_down(name: str):
    from tvm import relax

    from passfit.passes.sequence.catalogue import parse_spec

    from ..test_golden import script
    from .examples import EXAMPLES
    from .interpret import inputs_of, interpret

    text = ""
    for title, example in EXAMPLES[name].items():
        module = example.module()
        before = script(module)
        changed = parse_spec(name).apply(module)
        after = script(changed)
        assert script(module) == before, "a rule leaves its argument as it was"
        assert not changed.same_as(module), title
        relax.analysis.well_formed(changed)  # raises
        assert parse_spec(name).apply(changed).same_as(changed), f"{title}: not done in one go"
        text += f"==== {title}: before ====\n{before}==== {title}: after ====\n{after}"
        for seed in range(3):
            inputs = inputs_of(module, seed)
            for got, expected in zip(interpret(changed, inputs), interpret(module, inputs), strict=True):
                assert got.dtype == expected.dtype
                np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=title)
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("PASSFIT_WRITE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_the_rule_leaves_its_twins_as_they_are(name: str):
    from passfit.passes.sequence.catalogue import parse_spec

    from .examples import TWINS

    for title, twin in TWINS[name].items():
        module = twin.module()
        assert parse_spec(name).apply(module).same_as(module), title


def test_every_rule_has_examples_and_twins_and_a_reason():
    from .examples import EXAMPLES, REASONS, TWINS

    assert sorted(EXAMPLES) == sorted(TWINS) == sorted(REASONS) == sorted(NAMES)
    assert all(EXAMPLES.values()) and all(TWINS.values()) and all(REASONS.values())
    assert {file.stem for file in GOLDEN.iterdir()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_rule_fires_on_the_graph_it_names(name: str):
    """A reason that names graphs `rebench/NN.onnx` is checked there, alone and among the others of `simplify`.

    The other reasons say why the rule exists.
    """
    from passfit.frontend.canonicalise import import_model
    from passfit.frontend.relax.to_relax import to_relax
    from passfit.passes.graph.rules.book import CLEAN
    from passfit.passes.graph.rules.rule import apply_rules
    from passfit.passes.sequence.catalogue import parse_spec

    from .examples import REASONS

    for graph in re.findall(r"rebench/(\d+\.onnx)", REASONS[name]):
        if REBENCH is None:
            pytest.skip("shared/rebench is not there")
        module = to_relax(import_model(REBENCH / graph))
        fired = {name} if not parse_spec(name).apply(module).same_as(module) else set()
        apply_rules(module, [rule() for rule in CLEAN], lambda rule, count, fired=fired: fired.add(rule.name))
        assert name in fired

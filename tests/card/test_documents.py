"""Laws of card and BOM over any facts: valid by the official schema, the same bytes, nothing that breaks a table."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from passfit.card import Facts, bill_of_materials, model_card
from passfit.data.accuracy import Score
from passfit.memory.footprint import Baseline, Budget, Footprint, FootprintReport, Measured, Start
from passfit.targets import get_target

from ..report.results import accuracy

pytest.importorskip("cyclonedx", reason="the extra `test` is not installed")
BEST = Footprint(
    ram=640, flash=2048, arena=600, workspace=40, weights=2000, code=48, bound=590, floor=300, proved=False,
    kernels=3, sum=4000,
)  # fmt: skip
TARGET = get_target("stm32f446")
DIGEST = "0" * 64


@cache
def validator():
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6)


def facts(*, report: FootprintReport | None = None, **manifest: object) -> Facts:
    measured = Measured(True, "native", 700, 1.5, 1e-6, 2e-6, verified_by="onnxruntime")
    made = FootprintReport("net", TARGET.name, Start(9000, 5), BEST, Baseline.of(BEST), measured)
    return Facts(report or made, TARGET, manifest, {})


def valid(text: str) -> dict:
    problem = validator().validate_str(text)
    assert problem is None, problem
    return json.loads(text)


def licence_of(**stated: str) -> object:
    bom = valid(bill_of_materials(facts(source={"licence": stated} if stated else {})))
    return bom["metadata"]["component"].get("licenses")


texts = st.text(max_size=40)
ports = st.lists(
    st.fixed_dictionaries(
        {"name": texts, "shape": st.lists(st.integers(0, 9), max_size=3), "dtype": st.sampled_from(["int8", "float32"])}
    )
    | st.fixed_dictionaries(
        {
            "name": texts,
            "shape": st.just([1, 3]),
            "dtype": st.just("int8"),
            "scale": st.floats(1e-9, 1e9),
            "zero_point": st.integers(-128, 127),
        },
    ),
    max_size=3,
)
manifests = st.fixed_dictionaries(
    {},
    optional={
        "passes": st.lists(texts, max_size=3),
        "versions": st.dictionaries(st.sampled_from(["passfit", "apache-tvm"]), st.just("1.0")),
        "io": st.fixed_dictionaries({"name": st.just("net"), "inputs": ports, "outputs": ports}),
        "source": st.fixed_dictionaries(
            {}, optional={"source": texts, "sha256": st.just(DIGEST), "producer": texts, "author": texts,
                          "licence": st.fixed_dictionaries({"stated_by": texts, "name": texts})},
        ),
        "files": st.dictionaries(st.sampled_from(["libnet.a", "net.h", "inputs.bin", "LICENSE", "plan.json"]), st.just(DIGEST)),
    },
)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(manifests)
def test_any_facts_give_a_valid_bom_and_a_card_whose_tables_hold(manifest: dict):
    known = facts(**manifest)
    bom = bill_of_materials(known)
    assert bom == bill_of_materials(known) and model_card(known) == model_card(known)
    valid(bom)
    rows = 0
    for line in model_card(known).splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not rows or not cells or cells == rows
        rows = cells


def test_a_licence_is_an_expression_a_name_or_absent():
    assert licence_of(name="apache-2.0", stated_by="params.yaml") == [
        {"expression": "Apache-2.0", "acknowledgement": "declared"}
    ]
    assert licence_of(name="Acme terms", stated_by="params.yaml")[0]["license"]["name"] == "Acme terms"
    assert licence_of(file="LICENSE", stated_by="COPYING beside the model")[0]["license"]["name"] == "LICENSE"
    assert licence_of() is None
    assert "| licence | not known |" in model_card(facts())


def test_the_addresses_of_packages_are_encoded():
    source = {"source": "pypi:My_Models==1.0+cpu!a b/net.onnx"}
    bom = valid(bill_of_materials(facts(source=source, versions={"passfit": "1.0+local"})))
    assert bom["components"][0]["purl"] == "pkg:pypi/my-models@1.0%2Bcpu#a%20b/net.onnx"
    assert bom["metadata"]["tools"]["components"][0]["purl"] == "pkg:pypi/passfit@1.0%2Blocal"


def test_the_serial_number_tells_two_boms_apart():
    one, two = (valid(bill_of_materials(facts(passes=[name]))) for name in "ab")
    assert one["serialNumber"] != two["serialNumber"] and "timestamp" not in one["metadata"]


def test_the_card_says_how_the_result_was_judged_and_checked():
    report = facts().report
    over = facts(report=replace(report, budget=Budget(ram=512), fits=False), made_from={"cases": 3, "seed": 7})
    card = model_card(over)
    assert "**It does not fit the budget.**" in card and "| **ram** | 640 B | 512 B |" in card
    assert "error against ONNX Runtime: 2.0e-06" in card and "3 cases of inputs drawn by seed 7" in card
    assert "latency: 1.5 ms" in card
    not_run = replace(report, measured=Measured(False, "not-run: qemu is missing"))
    assert "The library was not executed (not-run: qemu is missing)." in model_card(facts(report=not_run))
    unverified = replace(report.measured, verified_by="not-verified: no evaluator")
    assert "were not compared: not-verified" in model_card(facts(report=replace(report, measured=unverified)))


def test_accuracy_on_samples_is_in_card_and_bom_with_their_digest():
    report = accuracy(original=Score(1000, 0.97))
    known = replace(facts(made_from={"cases": 3}), evaluated=report)
    card = model_card(known)
    assert "On samples of its users: accuracy 0.95 (float file 0.97, quantised file 0.95)" in card
    assert f"sha256 of their content: {'a' * 64}" in card and "| dog | 500 | 0.9 | 0.9 |" in card
    assert "were not seen" not in card and "were not seen" in model_card(facts(made_from={"cases": 3}))
    bom = valid(bill_of_materials(known))
    found = bom["metadata"]["component"]["modelCard"]
    assert found["modelParameters"]["datasets"] == [{"ref": "samples"}]
    (samples,) = [each for each in bom["components"] if each["bom-ref"] == "samples"]
    assert (
        samples["hashes"] == [{"alg": "SHA-256", "content": "a" * 64}]
        and "1000 have labels" in samples["data"][0]["description"]
    )
    scores = [
        (each["type"], each["value"], each["slice"])
        for each in found["quantitativeAnalysis"]["performanceMetrics"]
        if "slice" in each
    ]
    assert scores[0][:2] == ("accuracy", "0.95") and ("accuracy", "0.97") in [each[:2] for each in scores]
    assert ("right decisions", "0.9", "class dog, 500 samples") in scores
    valid(bill_of_materials(replace(known, evaluated=replace(accuracy(None), classes=()))))

"""Write a bill of materials in CycloneDX 1.6: the model with its card, its files and data, and the tools with versions.

It is written as JSON by hand: cyclonedx-python-lib 11.12 has no model cards (`Component.model_card` is a comment in its source).
The tests validate it by the official schema that this library ships. Source: CycloneDX 1.6, JSON Reference; OWASP,
Authoritative Guide to AI/ML-BOM.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from ..frontend.source.source import is_package, parse_pypi
from ..support.text_files import json_lines
from ..verify.golden import GOLDEN, INPUTS, OUTPUTS
from .facts import UNKNOWN, Facts

BOM = "bom.cdx.json"
_SPEC = "1.6"
_GOLDEN = (INPUTS, OUTPUTS, GOLDEN)
_SAMPLES = "samples"


def bill_of_materials(facts: Facts) -> str:
    """Return the BOM as JSON, the same text for the same facts.

    It has no time stamp, and a serial number made of its content.
    """
    parts = [_source(facts), *_files(facts), *_samples(facts)]
    content: dict[str, Any] = {
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "tools": {"components": list(_tools(facts))},
            "component": _model(facts),
        },
        "components": parts,
        "dependencies": [
            {"ref": "model", "dependsOn": [part["bom-ref"] for part in parts]},
            *({"ref": part["bom-ref"]} for part in parts),
        ],
    }
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest()
    serial = uuid.UUID(bytes=digest[:16], version=5)
    head = {"bomFormat": "CycloneDX", "specVersion": _SPEC, "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return json_lines({**head, **content})


def _model(facts: Facts) -> dict[str, Any]:
    return {
        "type": "machine-learning-model",
        "bom-ref": "model",
        "name": f"{facts.report.model} for {facts.report.target}",
        "description": f"C library compiled from an ONNX model for {facts.target.triple}, {facts.target.cpu}",
        **_licences(facts),
        "modelCard": _card(facts),
        "properties": [
            *_properties("pass", facts.manifest.get("passes", ())),
            *_properties("target", [facts.report.target]),
            *_properties("exact", [str(facts.report.exact).lower()]),
            *_properties("licence", [facts.licence.get("stated_by", UNKNOWN)]),
        ],
    }


def _source(facts: Facts) -> dict[str, Any]:
    """Return the ONNX model the library is made from."""
    source = facts.source
    found: dict[str, Any] = {
        "type": "machine-learning-model",
        "bom-ref": "onnx",
        "name": source.get("source", facts.report.model),
        **_licences(facts),
    }
    if "author" in source:
        found["authors"] = [{"name": source["author"]}]
    if "sha256" in source:
        found["hashes"] = _hashes(source["sha256"])
    if is_package(found["name"]):
        package = parse_pypi(found["name"])
        found["purl"] = f"{_purl(package.package, package.version)}#{quote(package.member)}"
    if "producer" in source:
        found["properties"] = _properties("producer", [source["producer"]])
    return found


def _files(facts: Facts) -> Iterator[dict[str, Any]]:
    for name, digest in facts.digests.items():
        part: dict[str, Any] = {
            "type": "data" if name in _GOLDEN else "library" if name.endswith((".a", ".so")) else "file",
            "bom-ref": f"file:{name}",
            "name": name,
            "hashes": _hashes(digest),
        }
        if name in _GOLDEN:
            part["data"] = [{"type": "dataset", "name": name, "description": _describe_golden(facts, name)}]
        if name.endswith((".a", ".so", ".h")):
            part |= _licences(facts)
        yield part


def _samples(facts: Facts) -> Iterator[dict[str, Any]]:
    """Yield the samples that the library was evaluated on, by the digest of their content; they are not delivered."""
    if facts.evaluated is None:
        return
    data = facts.evaluated.data
    said = f"samples for evaluation: {data.samples}, of which {data.labelled} have labels; not delivered"
    yield {
        "type": "data",
        "bom-ref": _SAMPLES,
        "name": data.source,
        **({"hashes": _hashes(data.digest)} if re.fullmatch("[0-9a-f]{64}", data.digest) else {}),
        "data": [{"type": "dataset", "name": data.source, "description": said}],
    }


def _scores(facts: Facts) -> Iterator[dict[str, str]]:
    """Yield the scores of the library, of the files behind it, and by class."""
    report = facts.evaluated
    if report is None:
        return
    library, samples = report.library, f"of {report.data.source}"
    sides = [("float file in ONNX Runtime", report.original), ("file in ONNX Runtime", report.reference)]
    scores = [(report.metric, f"library, {library.how}, on {library.samples} samples {samples}", library.value)]
    scores += [
        (report.metric, f"{name}, on {each.samples} samples {samples}", each.value) for name, each in sides if each
    ]
    scores += [("decisions as the file's", f"{library.samples} samples {samples}", report.agreement)]
    scores += [
        ("right decisions", f"class {each.name}, {each.samples} samples", each.library) for each in report.classes
    ]
    yield from (
        {"type": kind, "value": f"{value:.6g}", "slice": where} for kind, where, value in scores if value is not None
    )


def _describe_golden(facts: Facts, name: str) -> str:
    cases, source = facts.golden.get("cases", 0), facts.golden.get("outputs_of", UNKNOWN)
    texts = {
        INPUTS: f"golden vectors: inputs of {cases} cases, drawn by seed {facts.manifest.get('made_from', {}).get('seed', 0)}",
        OUTPUTS: f"golden vectors: outputs of {cases} cases, those of {source}",
    }
    return texts.get(name, "number of golden vectors, and the largest difference allowed of each output")


def _tools(facts: Facts) -> Iterator[dict[str, Any]]:
    for name, version in facts.manifest.get("versions", {}).items():
        yield {
            "type": "application" if name == "passfit" else "library",
            "bom-ref": f"tool:{name}",
            "name": name,
            "version": version,
            "purl": _purl(name, version),
        }


def _card(facts: Facts) -> dict[str, Any]:
    limits = [facts.accuracy, *(f"a better plan failed: {defect.reason}" for defect in facts.report.defects)]
    parameters: dict[str, Any] = {
        kind: [{"format": _format(port)} for port in facts.ports(kind)] for kind in ("inputs", "outputs")
    }
    datasets = [
        *(f"file:{name}" for name in _GOLDEN if name in facts.digests),
        *([_SAMPLES] if facts.evaluated else []),
    ]
    if datasets:
        parameters["datasets"] = [{"ref": each} for each in datasets]
    return {
        "modelParameters": parameters,
        "quantitativeAnalysis": {
            "performanceMetrics": [
                *({"type": kind, "value": value} for kind, value in _metrics(facts)),
                *_scores(facts),
            ]
        },
        "considerations": {"technicalLimitations": limits},
    }


def _format(port: dict[str, Any]) -> str:
    text = f"{port['name']}: {port['dtype']} {port['shape']}"
    if "scale" in port:
        text += f", scale {port['scale']:.9g}, zero point {port['zero_point']}"
    return f"{text}; {port['form']}" if "form" in port else text


def _metrics(facts: Facts) -> Iterator[tuple[str, str]]:
    best, ran, budget = facts.report.best, facts.report.measured, facts.report.budget
    values = {
        "ram in bytes": best.ram,
        "flash in bytes": best.flash,
        "stack in bytes": best.stack or None,
        "ram budget in bytes": budget.ram,
        "flash budget in bytes": budget.flash,
        "latency in milliseconds": ran.latency_ms,
        "instructions of a run": ran.instructions,
        "cycles of a run": ran.cycles,
        "estimated milliseconds of a run": None if ran.estimated is None else ran.estimated.likely,
        "largest error as a share of the output's range": ran.max_rel_error,
    }
    yield from ((kind, str(value)) for kind, value in values.items() if value is not None)


def _licences(facts: Facts) -> dict[str, Any]:
    """Return the field for the licence of the model: an SPDX expression, or a name that is none; no field if not known."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    licence = facts.licence
    name = licence.get("name") or licence.get("file")
    if not name:
        return {}
    try:
        choice: dict[str, Any] = {"expression": canonicalize_license_expression(name), "acknowledgement": "declared"}
    except InvalidLicenseExpression:
        choice = {"license": {"name": name, "acknowledgement": "declared"}}
    return {"licenses": [choice]}


def _purl(name: str, version: str) -> str:
    """Return the URL of a package of PyPI. Source: the purl specification, percent-encoding and the type pypi."""
    return f"pkg:pypi/{re.sub('[-_.]+', '-', name).lower()}@{quote(version, safe='')}"


def _hashes(digest: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": digest}]


def _properties(name: str, values) -> list[dict[str, str]]:
    return [{"name": f"passfit:{name}", "value": str(value)} for value in values]

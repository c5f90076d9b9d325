"""Refuse nodes that lack a required operand, before ONNX's inference: it ends the process at some of them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import TYPE_CHECKING

from ..canonical.read_onnx import CLASSICAL, NEWEST, ONNX_DOMAINS, all_nodes, operator_set, refuse

if TYPE_CHECKING:
    import onnx

_Key = tuple[str, str, str]


def refuse_lacking_operands(model: onnx.ModelProto) -> None:
    """Check that nodes have the operands that ONNX requires, in functions too. Raises ModelError for the first.

    A function lacks those that a call of it leaves out.
    """
    functions = {(each.domain, each.name, each.overload): each for each in model.functions}
    left_out: dict[_Key, set[str]] = {key: set() for key in functions}
    _check(model.graph, model.opset_import, frozenset(), left_out, functions)
    before = None
    while before != left_out:
        before = {key: set(names) for key, names in left_out.items()}
        for key, names in before.items():
            _check(functions[key], functions[key].opset_import, names, left_out, functions)


def _check(
    body: onnx.GraphProto | onnx.FunctionProto, imports: Iterable[onnx.OperatorSetIdProto], lacking: Set[str],
    left_out: dict[_Key, set[str]], functions: dict[_Key, onnx.FunctionProto],
) -> None:  # fmt: skip
    """Check a body without the values `lacking`; add to `left_out` the operands that its calls leave out."""
    from onnx import defs

    single = defs.OpSchema.FormalParameterOption.Single
    versions = {domain: max(0, min(operator_set(imports, domain=domain), NEWEST)) for domain in ("", CLASSICAL)}
    for node in all_nodes(body):
        given = [bool(name) and name not in lacking for name in node.input]
        called = functions.get((node.domain, node.op_type, node.overload))
        if called is not None:
            names = (name for place, name in enumerate(called.input) if not any(given[place : place + 1]))
            left_out[called.domain, called.name, called.overload].update(names)
            continue
        domain = "" if node.domain in ONNX_DOMAINS else node.domain
        version = versions.get(domain)
        if version is None or not defs.has(node.op_type, version, domain):
            continue
        for place, operand in enumerate(defs.get_schema(node.op_type, version, domain).inputs):
            if operand.option == single and not any(given[place : place + 1]):
                refuse(node, f"lacks its operand '{operand.name}'")

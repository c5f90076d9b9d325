"""Read a Relax function in destination-passing form: Program, kernels, weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from tvm import relax
from tvm.ir import GenericConst, GlobalVar, IRModule, Op
from tvm.tirx import PrimFunc

from ...errors import ModelError
from ...program import Buffer, Port, Program, Step, Tensor, View, Weight
from ...tir.tensor_values import array_of, tensor_digest

#: value of a Relax variable in the reader: a tensor number, or a tuple of values
_Value: TypeAlias = "int | tuple"


def read_program(
    module: IRModule, name: str, inputs: Sequence[str], outputs: Sequence[str], nodes: Mapping[str, tuple[str, ...]]
) -> tuple[Program, dict[str, PrimFunc], tuple[np.ndarray, ...]]:
    """Read `module`, the result of `dataflow_lower_passes` (see kernels/lower/lower.py); drop kernels no step calls.

    `inputs` and `outputs` are the names the model gives them; `nodes` are the ONNX nodes behind a Relax variable.
    """
    reader = _Reader(nodes)
    reader.read(module["main"])
    program = Program(
        name=name,
        steps=tuple(reader.steps),
        tensors=tuple(reader.tensors),
        buffers=tuple(reader.buffers),
        weights=tuple(reader.weights),
        inputs=tuple(Port(port, tensor) for port, tensor in zip(inputs, reader.inputs, strict=True)),
        outputs=tuple(Port(port, tensor) for port, tensor in zip(outputs, reader.outputs, strict=True)),
        views=tuple(reader.views),
    )
    used = {step.kernel for step in program.steps}
    kernels = {
        var.name_hint: function
        for var, function in sorted(module.functions.items(), key=lambda item: item[0].name_hint)
        if isinstance(function, PrimFunc) and var.name_hint in used
    }
    return program, kernels, tuple(reader.arrays)


class _Reader:
    """Walk the bindings in order; `values` maps a Relax variable to its tensor number, or a tuple of them."""

    def __init__(self, nodes: Mapping[str, tuple[str, ...]]):
        self.nodes = nodes
        self.steps: list[Step] = []
        self.tensors: list[Tensor] = []
        self.buffers: list[Buffer] = []
        self.weights: list[Weight] = []
        self.views: list[View] = []
        self.arrays: list[np.ndarray] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.values: dict[relax.Var, _Value] = {}
        self._weight_numbers: dict[str, int] = {}
        self._unwritten: set[int] = set()
        self._unnamed: set[int | None] = set()

    def read(self, function: relax.Function) -> None:
        for parameter in function.params:
            number = self._new_buffer(parameter.name, *_shape_and_dtype(parameter))
            self.values[parameter] = number
            self.inputs.append(number)
        for block in function.body.blocks:
            for binding in block.bindings:
                self.values[binding.var] = value = self._value(binding.value, binding.var)
                if isinstance(binding.value, (relax.Var, relax.Tuple)):
                    for number in _flat(value):
                        self._rename(number, binding.var.name)
        self.outputs = _flat(self._value(function.body.body, None))
        self.steps = [replace(step, nodes=self._nodes_of(step)) for step in self.steps]

    def _nodes_of(self, step: Step) -> tuple[str, ...]:
        names = (self.buffers[self.tensors[number].buffer_number].name for number in step.writes)
        return tuple(dict.fromkeys(node for name in names for node in self.nodes.get(name, ())))

    def _value(self, expr: relax.Expr, var: relax.Var | None) -> _Value:
        if isinstance(expr, relax.Var):
            return self.values[expr]
        if isinstance(expr, GenericConst):
            return self._weight(expr, var)
        if isinstance(expr, relax.Tuple):
            return tuple(self._value(field, var) for field in expr.fields)
        if isinstance(expr, relax.TupleGetItem):
            fields = self._value(expr.tuple_value, var)
            assert isinstance(fields, tuple)
            return fields[expr.index]
        if isinstance(expr, relax.Call):
            return self._call(expr, var)
        raise ModelError(
            f"The compiled graph holds a {type(expr).__name__} that only TVM's runtime can execute.",
            "Make the model static: give every input shape, and fold control flow.",
        )

    def _call(self, call: relax.Call, var: relax.Var | None) -> _Value:
        callee = call.op
        if isinstance(callee, GlobalVar):
            self._step(callee, call)
            return ()
        operator = callee.name if isinstance(callee, Op) else str(callee)
        if operator == "relax.builtin.alloc_tensor":
            number = self._new_buffer(var.name if var is not None else "", *_shape_and_dtype(call))
            self._unwritten.add(number)
            self._unnamed.add(self.tensors[number].buffer)
            return number
        if operator in ("relax.reshape", "relax.memory.view"):
            source = self._value(call.args[0], var)
            assert isinstance(source, int)
            return self._view(source, *_shape_and_dtype(call))
        described = operator.removeprefix("relax.")
        if isinstance(callee, relax.ExternFunc):
            described = str(callee.global_symbol)
        elif operator in ("relax.call_packed", "relax.call_dps_packed"):
            described = str(call.args[0].global_symbol)
        raise ModelError(
            f"The operator '{described}' would need TVM's runtime on the device.",
            "Replace the operator in the model, or fix the shapes of its inputs.",
        )

    def _step(self, kernel: GlobalVar, call: relax.Call) -> None:
        arguments = [number for argument in call.args for number in _flat(self._value(argument, None))]
        # In destination-passing form a kernel's results are the arguments that were allocated and not yet written.
        fresh = tuple(number for number in arguments if number in self._unwritten)
        reads = tuple(number for number in arguments if number not in self._unwritten)
        if tuple(arguments) != reads + fresh:
            raise ModelError(
                f"The kernel '{kernel.name_hint}' takes its results before its inputs, which passfit cannot call.",
                "This is a form of kernel passfit has not met: report the model.",
            )
        self._unwritten.difference_update(fresh)
        self.steps.append(Step(kernel.name_hint, reads, fresh))

    def _rename(self, number: int, name: str) -> None:
        """Name a buffer after the variable bound to its result: `lv = alloc`. The first name stays.

        The binding comes after the call that writes the buffer.
        """
        buffer = self.tensors[number].buffer
        if buffer is not None and buffer in self._unnamed:
            self._unnamed.remove(buffer)
            self.buffers[buffer] = replace(self.buffers[buffer], name=name)

    def _new_buffer(self, name: str, shape: tuple[int, ...], dtype: str) -> int:
        tensor = Tensor(shape, dtype, buffer=len(self.buffers))
        self.buffers.append(Buffer(name, tensor.nbytes))
        return self._add(tensor)

    def _view(self, source: int, shape: tuple[int, ...], dtype: str) -> int:
        original = self.tensors[source]
        number = self._add(Tensor(shape, dtype, buffer=original.buffer, weight=original.weight))
        if original.buffer is not None:
            self.views.append(View(number, source))
        return number

    def _weight(self, constant: GenericConst, var: relax.Var | None) -> int:
        array = array_of(constant.value)
        dtype = str(constant.value.dtype)
        digest = tensor_digest(constant.value)
        if digest not in self._weight_numbers:
            self._weight_numbers[digest] = len(self.weights)
            self.weights.append(Weight(f"weight{len(self.weights)}", array.nbytes, digest))
            self.arrays.append(array)
        return self._add(Tensor(tuple(array.shape), dtype, weight=self._weight_numbers[digest]))

    def _add(self, tensor: Tensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1


def _flat(value: _Value) -> list[int]:
    return [value] if isinstance(value, int) else [number for part in value for number in _flat(part)]


def _shape_and_dtype(expr: relax.Expr) -> tuple[tuple[int, ...], str]:
    kind = expr.ty
    if not isinstance(kind, relax.TensorType) or kind.shape is None:
        raise ModelError(
            "A tensor of the compiled graph has no static shape.", "Give every dynamic input a shape with --shape."
        )
    shape = []
    for extent in kind.shape:
        try:
            shape.append(int(extent))
        except TypeError as error:
            raise ModelError(
                f"A tensor of the compiled graph has the dynamic extent '{extent}'.",
                "Give every dynamic input a shape with --shape.",
            ) from error
    return tuple(shape), str(kind.dtype)

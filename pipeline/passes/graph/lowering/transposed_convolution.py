"""Lower transposed convolutions by phases: no zero between inputs is multiplied.

    y[f, x] = Σ_c Σ_j x[c, (x + p) / s - j] · w[c, f, (x + p) % s + s j]

Of `k` taps, a result of phase (x + p) % s meets ⌈k / s⌉ at most: those a multiple of the stride apart. TVM's own form
spreads the inputs with zeros, and meets all taps. Phases become axes when the kernel is scheduled (kernels/rules/axes).

A dilation d moves tap t to t · d. A result of phase r meets the taps t · d ≡ r modulo s: with g the common divisor of s
and d, none if g does not divide r, else every (s / g)th tap from t₀ = (r / g) · (d / g)⁻¹ modulo s / g on.

Imports TVM: only imported once a graph is legalized.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tvm import relax, te, tirx
from tvm.ir import Expr

_LAYOUTS = ("NCW", "NCHW", "NCDHW")


@dataclass(frozen=True)
class _Axis:
    """One axis of the plane: extents of input and kernel, and how the kernel moves."""

    extent: int
    taps: int
    stride: int
    dilation: int
    before: int
    result: int

    @property
    def steps(self) -> int:
        """Return the most taps that one result meets."""
        return -(-self.taps // self.apart)

    @property
    def permuted(self) -> bool:
        """Tell whether phases do not meet the tap of their own number first."""
        return self.stride > 1 and self.dilation > 1

    @property
    def common(self) -> int:
        return math.gcd(self.stride, self.dilation)

    @property
    def apart(self) -> int:
        """Return the distance of two taps that one result meets."""
        return self.stride // self.common

    def first(self, phase: Expr) -> Expr:
        """Return the first tap that results of a phase meet."""
        if not self.permuted:
            return phase
        inverse = pow(self.dilation // self.common, -1, self.apart)
        return tirx.floormod(tirx.floordiv(phase, self.common) * inverse, self.apart)

    def place(self, at: Expr, step: Expr) -> Expr:
        """Return the input that tap number `step` of the phase of result `at` meets."""
        whole, phase = tirx.floordiv(at + self.before, self.stride), self.phase(at)
        if self.permuted:
            whole += tirx.floordiv(phase - self.first(phase) * self.dilation, self.stride)
        return whole - step * (self.dilation // self.common)

    def phase(self, at: Expr) -> Expr:
        return tirx.floormod(at + self.before, self.stride)

    def tap(self, at: Expr, step: Expr) -> Expr:
        return self.first(self.phase(at)) + step * self.apart

    def inside(self, at: Expr, step: Expr) -> list[Expr]:
        """Return the conditions for the input to exist, for results up to a whole stride."""
        place, found = self.place(at, step), []
        whole = self.result + -self.result % self.stride
        least = self.before // self.stride - (self.steps - 1) * (self.dilation // self.common)
        if least < 0 or self.permuted:
            found.append(tirx.const(0, "int64") <= place)
        if (whole - 1 + self.before) // self.stride >= self.extent:
            found.append(place < self.extent)
        return found

    def exists(self, at: Expr, step: Expr) -> list[Expr]:
        """Return the conditions for the tap to exist: not every phase has as many."""
        found = [tirx.floormod(self.phase(at), self.common) < 1] if self.common > 1 else []
        return [*found, self.tap(at, step) < self.taps] if self.taps % self.apart else found


def legalize_transposed(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Legalize a transposed convolution by its phases; a rule for LegalizeOps.

    Leaves it to TVM without strides and dilations: TVM spreads weights with zeros for these.
    """
    attrs, rank = call.attrs, len(call.attrs.strides)
    strides, dilation = [int(each) for each in attrs.strides], [int(each) for each in attrs.dilation]
    plain = (
        attrs.data_layout == attrs.out_layout == _LAYOUTS[rank - 1]
        and str(attrs.kernel_layout) == "IO" + _LAYOUTS[rank - 1][2:]
    )
    if not plain or max(*strides, *dilation) == 1:
        return call.op.get_attr("FLegalize")(builder, call)
    data, weight = ([int(extent) for extent in operand.ty.shape] for operand in call.args)
    result, before = [int(extent) for extent in call.ty.shape], [int(each) for each in attrs.padding[:rank]]
    axes = [_Axis(*each) for each in zip(data[2:], weight[2:], strides, dilation, before, result[2:])]
    groups, dtype = int(attrs.groups), str(call.ty.dtype)

    def transpose(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
        return transposed_convolution(data, weight, axes, result, groups, dtype)

    return builder.call_te(transpose, *call.args, primfunc_name_hint=f"conv{rank}d_transpose")


def transposed_convolution(
    data: te.Tensor, weight: te.Tensor, axes: Sequence[_Axis], shape: Sequence[int], groups: int, dtype: str
) -> te.Tensor:
    """Convolve `data` [n, c, plane] by `weight` [c, f / groups, taps], transposed: [n, f, plane] of `shape`."""
    inputs, filters = int(data.shape[1]) // groups, int(weight.shape[1])
    channel = te.reduce_axis((0, inputs), name="rc")
    steps = [te.reduce_axis((0, axis.steps), name=f"r{number}") for number, axis in enumerate(axes)]

    def element(n: Expr, f: Expr, *plane: Expr) -> Expr:
        group, place = (0, f) if groups == 1 else (f // filters, f % filters) if filters > 1 else (f, 0)
        c = group * inputs + channel if groups > 1 else channel
        walked = list(zip(axes, plane, steps))
        value = data[(n, c, *(axis.place(at, step) for axis, at, step in walked))]
        factor = weight[(c, place, *(axis.tap(at, step) for axis, at, step in walked))]
        met = _if([each for axis, at, step in walked for each in axis.inside(at, step)], value, data.dtype)
        tap = _if([each for axis, at, step in walked for each in axis.exists(at, step)], factor, weight.dtype)
        return te.sum(met.astype(dtype) * tap.astype(dtype), axis=[channel, *steps])

    return te.compute(tuple(shape), element, name="transposed", tag="transposed_convolution")


def _if(conditions: Sequence[Expr], value: Expr, dtype: str) -> Expr:
    return tirx.if_then_else(tirx.all(*conditions), value, tirx.const(0, dtype)) if conditions else value

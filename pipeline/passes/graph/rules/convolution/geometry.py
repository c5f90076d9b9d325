"""Read and rebuild convolutions of any rank and layout, transposed ones too."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import relax

from ..dataflow import dtype_of, operator_of, shape_of

CONVOLUTIONS = ("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d")
TRANSPOSED = ("relax.nn.conv1d_transpose", "relax.nn.conv2d_transpose", "relax.nn.conv3d_transpose")


@dataclass(frozen=True)
class Geometry:
    """Hold the attributes of a convolution, spatial ones in the order of its data layout."""

    operator: str
    strides: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    data_layout: str
    kernel_layout: str
    #: elements added behind a transposed convolution
    extra: tuple[int, ...] = ()

    @classmethod
    def of(cls, call: relax.Call) -> Geometry | None:
        """Read a call; None for operators that are not a convolution, packed layouts, mixed dtypes, unknown shapes."""
        operator, attrs = operator_of(call), call.attrs
        if operator not in (*CONVOLUTIONS, *TRANSPOSED):
            return None
        data, kernel = str(attrs.data_layout), str(attrs.kernel_layout)
        if not (data.isalpha() and kernel.isalpha()) or str(attrs.out_layout or data) != data:
            return None
        if len({dtype_of(each) for each in (call, *call.args)}) != 1 or None in map(shape_of, (call, *call.args)):
            return None
        padding = tuple(int(each) for each in attrs.padding)
        rank = len(padding) // 2
        extra = tuple(int(each) for each in attrs.output_padding) if operator in TRANSPOSED else ()
        return cls(
            operator, tuple(map(int, attrs.strides)), padding[:rank], padding[rank:], tuple(map(int, attrs.dilation)),
            int(attrs.groups), data, kernel, extra,
        )  # fmt: skip

    @property
    def transposed(self) -> bool:
        return self.operator in TRANSPOSED

    @property
    def channel_axis(self) -> int:
        """Return the axis of channels, of data and result."""
        return self.data_layout.index("C")

    @property
    def spatial(self) -> tuple[str, ...]:
        """Return the letters of the spatial axes, in the order of strides and padding."""
        return tuple(letter for letter in self.data_layout if letter not in "NC")

    def data_axes(self) -> tuple[int, ...]:
        """Return the spatial axes of data and result."""
        return tuple(map(self.data_layout.index, self.spatial))

    def kernel_axes(self) -> tuple[int, ...]:
        """Return the spatial axes of the weight."""
        return tuple(map(self.kernel_layout.index, self.spatial))

    def unpadded(self) -> bool:
        return not any((*self.before, *self.after))

    def call(self, data: relax.Expr, weight: relax.Expr, out_dtype: str | None = None) -> relax.Call:
        """Return the convolution of `data` with `weight`, accumulated in `out_dtype`; None: in theirs."""
        options = {"output_padding": list(self.extra)} if self.transposed else {}
        return getattr(relax.op.nn, self.operator.removeprefix("relax.nn."))(
            data, weight, strides=list(self.strides), padding=[*self.before, *self.after], dilation=list(self.dilation),
            groups=self.groups, data_layout=self.data_layout, kernel_layout=self.kernel_layout,
            out_layout=self.data_layout, out_dtype=out_dtype, **options,
        )  # fmt: skip

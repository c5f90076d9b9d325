"""The trained network of `passfit.digits`, in floats and quantised, and digits as an .npz."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx

from passfit.digits import LEARNT, load_digits, train_network


def quantised_model() -> onnx.ModelProto:
    """Return the quantised network, a copy of its own for each caller."""
    return onnx.ModelProto.FromString(_quantised())


@lru_cache(1)
def _quantised() -> bytes:
    """Quantise the network by onnxruntime's quantiser, calibrated on digits: QDQ, signed bytes, per channel."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Pictures(CalibrationDataReader):
        def __init__(self) -> None:
            self._left: Iterator[np.ndarray] = iter(load_digits()[0][:LEARNT:12])

        def get_next(self) -> dict[str, np.ndarray] | None:
            picture = next(self._left, None)
            return None if picture is None else {"x": picture[None]}

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # the quantiser recommends a preparation that this network does not need
    try:
        with TemporaryDirectory() as folder:
            file, out = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
            onnx.save(train_network(), file)
            quantize_static(
                file, out, Pictures(), quant_format=QuantFormat.QDQ, per_channel=True,
                activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
            )  # fmt: skip
            return out.read_bytes()
    finally:
        root.setLevel(level)


def save_digits(folder: Path, count: int | None = None, first: int = LEARNT) -> Path:
    """Write the digits that the network has not learnt, with labels, to an .npz."""
    pictures, labels = (each[first:][:count] for each in load_digits())
    np.savez(folder / "digits.npz", x=pictures, labels=labels)
    return folder / "digits.npz"

"""Windows with places, padding and powers; and operands in forms that exporters seldom write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passfit.targets import how_to_run

from .building import HOST
from .single import single, wrong

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not how_to_run(HOST).native, reason="the host cannot run x86-64-v3"),
]


IMAGE = np.random.default_rng(0).permutation(2 * 3 * 6 * 7).reshape(2, 3, 6, 7).astype(np.float32)
FORMS = {
    "plain": {"kernel_shape": [2, 2]},
    "padded": {"kernel_shape": [3, 2], "strides": [1, 2], "pads": [2, 0, 1, 1]},
    "same": {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    "ceil": {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
}


def test_places_of_the_largest(tmp_path: Path) -> None:
    cases = []
    for name, form in FORMS.items():
        for order in (0, 1):
            cases.append(single(f"{name}-{order}", "MaxPool", [IMAGE], results=2, storage_order=order, **form))
    cases.append(
        single("dilated", "MaxPool", [IMAGE], results=2, kernel_shape=[2, 3], dilations=[2, 2], pads=[1, 1, 1, 1])
    )
    cases.append(single("line", "MaxPool", [IMAGE[0]], results=2, kernel_shape=[3], strides=[2]))
    cases.append(single("bytes", "MaxPool", [IMAGE.astype(np.int8)], results=2, kernel_shape=[2, 2]))
    places = np.array([[[[5, 7], [13, 15]], [[16, 18], [26, 31]]]])
    cases.append(single("unpool", "MaxUnpool", [IMAGE[:1, :2, :2, :2], places], kernel_shape=[2, 2], strides=[2, 2]))
    assert wrong(cases, tmp_path) == {}


def test_powers_of_windows(tmp_path: Path) -> None:
    cases = [single(f"{name}-{p}", "LpPool", [IMAGE], p=p, **form) for name, form in FORMS.items() for p in (1, 2, 3)]
    assert wrong(cases, tmp_path) == {}


def test_regions_move_by_half_a_pixel_once_scaled(tmp_path: Path) -> None:
    regions, images = np.array([[0.5, 1, 4.5, 5], [1, 0, 6, 3.5]], np.float32), np.array([1, 0])
    cases = []
    for mode in ("half_pixel", "output_half_pixel"):
        for scale in (1.0, 0.8, 0.25):
            options = {
                "coordinate_transformation_mode": mode,
                "spatial_scale": scale,
                "sampling_ratio": 2,
                "output_height": 3,
                "output_width": 2,
            }
            cases.append(single(f"{mode}-{scale}", "RoiAlign", [IMAGE, regions, images], **options))
    assert wrong(cases, tmp_path) == {}


def test_sampled_data_keep_their_dtype(tmp_path: Path) -> None:
    data, grid = IMAGE[:, :, :3, :4] / 64, np.random.default_rng(1).uniform(-1, 1, (2, 3, 2, 2))
    regions, images = np.array([[0.5, 1, 2.5, 2], [1, 0, 3, 1.5]]), np.array([1, 0])
    cases = []
    for dtype, places in (
        (np.float16, np.float32),
        (np.float16, np.float16),
        (np.float32, np.float64),
        (np.float64, np.float32),
    ):
        cases.append(
            single(f"grid-{dtype.__name__}-{places.__name__}", "GridSample", [data.astype(dtype), grid.astype(places)])
        )
    for dtype in (np.float16, np.float64):
        options = {"sampling_ratio": 2, "output_height": 3, "output_width": 2}
        cases.append(
            single(
                f"regions-{dtype.__name__}", "RoiAlign", [data.astype(dtype), regions.astype(dtype), images], **options
            )
        )
    assert wrong(cases, tmp_path) == {}


def test_lengths_of_constant_sequences_are_checked_as_the_library_runs(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    x, w, r, b = (
        random.standard_normal(shape).astype(np.float32) for shape in ((3, 1, 3), (1, 4, 3), (1, 4, 1), (1, 8))
    )
    constants = dict(enumerate((x, w, r, b, np.array([1], np.int32))))
    assert wrong([single("lengths", "LSTM", [], constants, opset=14, hidden_size=1)], tmp_path) == {}


def test_operands_in_odd_forms(tmp_path: Path) -> None:
    x = IMAGE[0, :, :2, :4] / 7
    cases = [
        single("Unsqueeze", "Unsqueeze", [x], {1: np.asarray(-1)}),
        *(
            single(f"Pad-{pads}", "Pad", [x, np.float32(2.5)], {1: np.array(pads)})
            for pads in ([1, 0, 2, 0, 1, 0], [0, -1, 1, 2, 0, -2])
        ),
        *(
            single(f"Pad-{mode}", "Pad", [x], {1: np.array([0, 0, -1, 0, 1, 2])}, opset=19, mode=mode)
            for mode in ("wrap", "edge", "reflect")
        ),
        single("LayerNormalization", "LayerNormalization", [x, x[0, 0], x[0, :1]], axis=1),
        single("LayerNormalization-of-one-scale", "LayerNormalization", [x, x[0, 0], x[0, 0, :1]]),
        single(
            "LayerNormalization-of-doubles", "LayerNormalization", [x.astype(np.float64), x[0, 0].astype(np.float64)]
        ),
        *(single(f"EyeLike-{k}-{kind}", "EyeLike", [x[0]], k=k, dtype=kind) for k in (0, 2, -1) for kind in (1, 7)),
    ]
    assert wrong(cases, tmp_path) == {}


def test_divisors_and_shifts_may_be_computed(tmp_path: Path) -> None:
    x, by = IMAGE[0, 0] - 20, np.resize(np.float32([2.5, -3, 0, np.inf, -np.inf, np.nan, 0.7]), (6, 7))
    bits, shift = np.arange(42, dtype=np.uint32) * 99_999_999, np.arange(42, dtype=np.uint32) % 32
    cases = [
        *(
            single(f"Mod-{kind.__name__}", "Mod", [x.astype(kind), by.astype(kind)], fmod=1)
            for kind in (np.float16, np.float32, np.float64)
        ),
        single("Mod-of-integers", "Mod", [x.astype(np.int64), np.resize(np.array([2, -3, 7]), (6, 7))], fmod=1),
        single("Mod-by-constants", "Mod", [x], {1: by}, fmod=1),
        *(single(f"BitShift-{way}", "BitShift", [bits, shift], direction=way) for way in ("LEFT", "RIGHT")),
        single(
            "BitShift-of-bytes",
            "BitShift",
            [bits.astype(np.uint8), np.resize(np.uint8([1, 8, 200]), 42)],
            direction="LEFT",
        ),
    ]
    assert wrong(cases, tmp_path) == {}

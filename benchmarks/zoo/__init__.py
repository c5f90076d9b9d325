"""Well-known architectures as ONNX models with seeded random weights, of the published sizes; nothing is downloaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import onnx

from .densenet import densenet121
from .efficientnet import efficientnet_b0
from .mobilenet import mobilenet_v1, mobilenet_v2
from .nasnet import nasnet
from .quantised import mcunet_vww_int8, minilm_int8, mobilenet_v2_int8
from .randwire import randwire
from .resnet import resnet50
from .squeezenet import squeezenet1_1
from .transformer import decoder_step, encoder, vision_transformer
from .unet import unet
from .vgg import vgg16
from .yolo import yolov4_tiny

BUILDERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "vgg16": vgg16,
    "resnet50": resnet50,
    "mobilenet_v1": mobilenet_v1,
    "mobilenet_v2": mobilenet_v2,
    "efficientnet_b0": efficientnet_b0,
    "densenet121": densenet121,
    "squeezenet1.1": squeezenet1_1,
    "yolov4-tiny": yolov4_tiny,
    "unet": unet,
    "nasnet": nasnet,
    "randwire": randwire,
}
#: transformers of no published size: small ones, for small devices
TRANSFORMERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "encoder": encoder,
    "decoder_step": decoder_step,
    "vision_transformer": vision_transformer,
    "minilm-int8": minilm_int8,
}

#: networks for microcontrollers, in int8
MICRO: dict[str, Callable[[], onnx.ModelProto]] = {
    "mobilenet_v2-0.35-int8": mobilenet_v2_int8,
    "mcunet-vww-int8": mcunet_vww_int8,
}


def build(name: str, folder: Path) -> Path:
    """Return the file of a model of BUILDERS, TRANSFORMERS or MICRO in `folder`; write it if it is missing."""
    return write(folder / f"{name}.onnx", (BUILDERS | TRANSFORMERS | MICRO)[name])


def write(path: Path, build: Callable[[], onnx.ModelProto]) -> Path:
    """Return the file `path`; build and write the model if it is missing."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}.new")
        new.write_bytes(build().SerializeToString(deterministic=True))
        os.replace(new, path)
    return path

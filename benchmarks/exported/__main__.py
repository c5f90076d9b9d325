"""Write the networks to ONNX files; `python -m exported --out FOLDER [--only REGEX]`, by a Python that has the exporters.

Prints a line of JSON for each model: its name, and the exporter's reason if it wrote none.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

#: modules by the packages they need
_FAMILIES = {
    "sound": ("torch", "onnxscript"),
    "pictures": ("torch", "onnxscript"),
    "detectors": ("torch", "torchvision", "onnxscript"),
    "sequences": ("torch", "onnxscript"),
    "rarer": ("torch", "onnxscript"),
    "blocks": ("torch", "onnxscript"),
    "ready_made": ("torch", "torchvision", "onnxscript"),
    "keras_models": ("tensorflow", "tf2onnx"),
    "sklearn_models": ("sklearn", "skl2onnx"),
    "paddle_models": ("paddle", "paddle2onnx"),
}
#: characters of an exporter's reason
_REASON = 300


def writers(package: str = "") -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Yield each model's name with the function that writes it, of the families whose packages are here; of those that need one."""
    for family, needed in _FAMILIES.items():
        if (not package or package in needed) and all(map(importlib.util.find_spec, needed)):
            module = importlib.import_module(f"{__package__}.{family}")
            if hasattr(module, "NETWORKS"):
                from .network import exports

                for name, build in module.NETWORKS.items():
                    yield from exports(name, build).items()
            else:
                yield from module.WRITERS.items()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--needs", default="", help="write the networks of this package alone")
    arguments = parser.parse_args()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, write in writers(arguments.needs):
        if re.search(arguments.only, name):
            file, reason = arguments.out / f"{name}.onnx", ""
            try:
                write(file)
            except (Exception, SystemExit) as error:  # an exporter's refusal is a result
                file.unlink(missing_ok=True)
                while error.__cause__ is not None:  # PyTorch's own words say where it stopped, not why
                    error = error.__cause__
                reason = re.sub(r"\x1b\[\d*m", "", " ".join(f"{type(error).__name__}: {error}".split()))[:_REASON]
            print(json.dumps({"model": name, "reason": reason}), flush=True)


if __name__ == "__main__":
    main()

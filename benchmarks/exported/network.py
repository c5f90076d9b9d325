"""Describe a PyTorch module with an example, and export it by both of PyTorch's exporters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

# its fast path has no ONNX operator
torch.backends.mha.set_fastpath_enabled(False)
#: TorchScript's newest operator set; dynamo writes its own
_SCRIPT_SET = 18


@dataclass(frozen=True)
class Network:
    """Module with example inputs; `scripted` is compiled by torch.jit.script first, so that its loops stay."""

    module: nn.Module
    example: tuple[Tensor, ...]
    scripted: bool = False


def by_dynamo(network: Network, path: Path) -> None:
    torch.onnx.export(network.module, network.example, path, dynamo=True, external_data=False, verbose=False)


def by_script(network: Network, path: Path) -> None:
    module = torch.jit.script(network.module) if network.scripted else network.module
    torch.onnx.export(module, network.example, path, dynamo=False, opset_version=_SCRIPT_SET)


def exports(name: str, build: Callable[[], Network]) -> dict[str, Callable[[Path], None]]:
    """Return the functions that write the network, by the name of model and exporter."""

    def write(export: Callable[[Network, Path], None], path: Path) -> None:
        torch.manual_seed(0)
        network = build()
        settle(network.module)
        with torch.no_grad():
            export(network, path)

    written = {"dynamo": by_dynamo, "torchscript": by_script}
    return {f"{name}.{key}": (lambda path, export=export: write(export, path)) for key, export in written.items()}


def settle(module: nn.Module) -> None:
    """Set a module to evaluation, with statistics of normalisations as training leaves them."""
    module.eval()
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.running_mean is not None:
            part.running_mean.normal_(0, 0.2)
            part.running_var.uniform_(0.5, 1.5)

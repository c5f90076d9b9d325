"""Take torchvision's own detectors, segmenters and flow, as its users export them: random weights, small pictures."""

from __future__ import annotations

import torch
import torchvision
from torch import Tensor, nn

from .network import Network


class Detection(nn.Module):
    """Detector of torchvision for one picture, its three results in a row."""

    def __init__(self, name: str, **options: object):
        super().__init__()
        self.body = getattr(torchvision.models.detection, name)(
            weights=None, weights_backbone=None, num_classes=4, **options
        )

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        (found,) = self.body([image])
        return tuple(found.values())


class Segmentation(nn.Module):
    """Segmenter of torchvision, without the name of its result."""

    def __init__(self, name: str):
        super().__init__()
        self.body = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=4)

    def forward(self, image: Tensor) -> Tensor:
        return self.body(image)["out"]


def detector(name: str, side: int, **options: object) -> Network:
    return Network(Detection(name, **options), (torch.rand(3, side, side),))


def classifier(name: str, side: int, **options: object) -> Network:
    return Network(
        getattr(torchvision.models, name)(weights=None, num_classes=5, **options), (torch.rand(1, 3, side, side),)
    )


NETWORKS = {
    "ssdlite": lambda: detector("ssdlite320_mobilenet_v3_large", 96, detections_per_img=10, topk_candidates=20),
    "faster-rcnn": lambda: detector(
        "fasterrcnn_mobilenet_v3_large_320_fpn", 96, min_size=96, max_size=96, box_detections_per_img=10,
        rpn_pre_nms_top_n_test=20, rpn_post_nms_top_n_test=10,
    ),
    "lraspp": lambda: Network(Segmentation("lraspp_mobilenet_v3_large"), (torch.rand(1, 3, 64, 64),)),
    "shufflenet": lambda: classifier("shufflenet_v2_x0_5", 64),
    "mnasnet": lambda: classifier("mnasnet0_5", 64),
    "regnet": lambda: classifier("regnet_y_400mf", 64),
    "googlenet": lambda: classifier("googlenet", 64, init_weights=False, aux_logits=False),
}  # fmt: skip

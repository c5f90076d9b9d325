"""Train a small classifier of 8×8 digits and export it: `python export.py [--width 8] digits.onnx`; weights go beside it."""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=16)
parser.add_argument("out")
args = parser.parse_args()


class Digits(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, groups=width), nn.Conv2d(width, 2 * width, 1), nn.Hardswish(),
            nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2),
        )  # fmt: skip
        self.head = nn.Sequential(nn.Flatten(), nn.LayerNorm(8 * width), nn.Dropout(0.1), nn.Linear(8 * width, 10))

    def forward(self, image):
        return self.head(self.body(image)).softmax(-1)


torch.manual_seed(0)
digits = load_digits()
images, labels = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target)
model = Digits(args.width)
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
for _ in range(15):
    for batch in torch.randperm(1500).split(64):
        optimizer.zero_grad()
        nn.functional.nll_loss(torch.log(model(images[batch]) + 1e-9), labels[batch]).backward()
        optimizer.step()
model.eval()
print("accuracy", (model(images[1500:]).argmax(-1) == labels[1500:]).float().mean().item())
batch = torch.export.Dim("batch")
torch.onnx.export(
    model, (images[:2],), args.out, dynamo=True, input_names=["image"], output_names=["scores"],
    dynamic_shapes={"image": {0: batch}},
)  # fmt: skip

"""Train a forest on Fisher's irises and export it: the stage `train` of dvc.yaml."""

import json
from pathlib import Path

import numpy as np
import onnx
from ruamel.yaml import YAML
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

params = YAML(typ="safe").load(Path("params.yaml"))["forest"]
rows, labels = load_iris(return_X_y=True)
rows = rows.astype(np.float32)
model = make_pipeline(
    StandardScaler(), RandomForestClassifier(params["trees"], max_depth=params["depth"], random_state=0)
)
model.fit(rows[::2], labels[::2])
Path("metrics.json").write_text(json.dumps({"accuracy": model.score(rows[1::2], labels[1::2])}) + "\n")
Path("models").mkdir(exist_ok=True)
onnx.save(to_onnx(model, rows[:1]), "models/forest.onnx")

"""Build small networks of Keras, and write them by tf2onnx, from Keras or from quantised TensorFlow Lite."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"], os.environ["KERAS_BACKEND"] = "3", "tensorflow"
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

keras, layers = tf.keras, tf.keras.layers
#: operator set of tf2onnx
_SET = "18"


def gelu(x: tf.Tensor) -> tf.Tensor:
    """Return GELU by tanh; tf2onnx leaves the exact one, of TensorFlow's Erfc, unconverted."""
    return keras.activations.gelu(x, approximate=True)


def exact_gelu() -> keras.Model:
    """Return a layer with Keras's own GELU."""
    given = keras.Input((8,), batch_size=1)
    return keras.Model(given, layers.Dense(4, activation="gelu")(given))


def recurrent(kind: str) -> keras.Model:
    """Return a recurrent tagger, both ways."""
    layer = getattr(layers, kind)
    return keras.Sequential(
        [keras.Input((20, 8), batch_size=1), layers.Bidirectional(layer(16, return_sequences=True)), layer(8), layers.Dense(4, activation="softmax")]
    )  # fmt: skip


def separable() -> keras.Model:
    """Return a network of separable windows with squeeze and excitation, Keras's way."""
    given = keras.Input((32, 32, 3), batch_size=1)
    x = layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False)(given)
    x = layers.Activation("swish")(layers.BatchNormalization()(x))
    x = layers.SeparableConv2D(24, 5, strides=2, padding="same")(x)
    scale = layers.Dense(24, activation="sigmoid")(
        layers.Dense(6, activation="relu")(layers.GlobalAveragePooling2D()(x))
    )
    x = layers.Multiply()([x, layers.Reshape((1, 1, 24))(scale)])
    return keras.Model(given, layers.Dense(10)(layers.Flatten()(layers.AveragePooling2D(2)(x))))


def segmenter() -> keras.Model:
    """Return an encoder and decoder: transposed windows, up-sampling both ways, cropping."""
    given = keras.Input((30, 30, 3), batch_size=1)
    fine = layers.Conv2D(8, 3, padding="same", activation="relu")(given)
    x = layers.Conv2D(16, 3, strides=2, padding="same", activation="elu")(fine)
    x = layers.Conv2D(16, 3, dilation_rate=2, padding="same", activation=gelu)(x)
    x = layers.Concatenate()(
        [
            layers.Conv2DTranspose(8, 3, strides=2, padding="same")(x),
            layers.UpSampling2D(2, interpolation="bilinear")(x),
            fine,
        ]
    )
    return keras.Model(given, layers.Softmax()(layers.Conv2D(4, 1)(layers.Cropping2D(2)(layers.ZeroPadding2D(1)(x)))))


def attention() -> keras.Model:
    """Return a text network: embedding, attention of several heads, norms."""
    given = keras.Input((16,), batch_size=1, dtype="int32")
    x = layers.Embedding(100, 32)(given)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 8)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(32)(layers.Dense(64, activation=gelu)(x)))
    return keras.Model(given, layers.Dense(3, activation="softmax")(layers.GlobalMaxPooling1D()(x)))


def streamed() -> keras.Model:
    """Return causal, dilated convolutions in one dimension."""
    given = keras.Input((64, 6), batch_size=1)
    x = given
    for rate in (1, 2, 4):
        x = layers.Conv1D(12, 3, padding="causal", dilation_rate=rate, activation="relu")(x)
    return keras.Model(given, layers.Dense(2)(layers.MaxPooling1D(4)(x)))


def frames() -> keras.Model:
    """Return a network of short videos: ConvLSTM2D and windows in three dimensions."""
    given = keras.Input((4, 12, 12, 2), batch_size=1)
    x = layers.ConvLSTM2D(6, 3, padding="same", return_sequences=True)(given)
    return keras.Model(given, layers.GlobalAveragePooling3D()(layers.Conv3D(4, 3, activation="relu")(x)))


def convert(arguments: list[str], path: Path) -> None:
    command = [sys.executable, "-m", "tf2onnx.convert", *arguments, "--output", str(path), "--opset", _SET]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])


def write_saved(build: Callable[[], keras.Model], path: Path) -> None:
    keras.utils.set_random_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        build().export(folder, verbose=False)
        convert(["--saved-model", folder], path)


def write_lite(build: Callable[[], keras.Model], quantised: bool, path: Path) -> None:
    keras.utils.set_random_seed(0)
    model = build()
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if quantised:
        random = np.random.default_rng(0)
        shape = model.inputs[0].shape
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([random.random(shape, np.float32)] for _ in range(20))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    with tempfile.TemporaryDirectory() as folder:
        lite = Path(folder) / "model.tflite"
        lite.write_bytes(converter.convert())
        convert(["--tflite", str(lite)], path)


_MODELS = {
    "keras-gru": partial(recurrent, "GRU"), "keras-lstm": partial(recurrent, "LSTM"), "keras-separable": separable,
    "keras-segmenter": segmenter, "keras-attention": attention, "keras-causal": streamed, "keras-conv-lstm": frames,
    "keras-exact-gelu": exact_gelu,
}  # fmt: skip
#: TensorFlow's converter crashes on quantised recurrence
_QUANTISED = ("keras-separable", "keras-segmenter", "keras-causal")
WRITERS: dict[str, Callable[[Path], None]] = (
    {f"{name}.tf2onnx": partial(write_saved, build) for name, build in _MODELS.items()}
    | {f"{name}.tflite": partial(write_lite, build, False) for name, build in _MODELS.items()}
    | {f"{name}.tflite-int8": partial(write_lite, _MODELS[name], True) for name in _QUANTISED}
)

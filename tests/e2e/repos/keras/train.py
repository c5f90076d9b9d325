"""Train a small classifier of 8×8 digits with Keras, freeze it, and convert it by tf2onnx: `python train.py model.onnx`."""

import sys

import keras
import tensorflow as tf
import tf2onnx
from sklearn.datasets import load_digits
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

keras.utils.set_random_seed(0)
digits = load_digits()
images, labels = digits.images[..., None].astype("float32") / 16, digits.target
model = keras.Sequential(
    [
        keras.Input((8, 8, 1), name="image"),
        keras.layers.Conv2D(8, 3, padding="same", use_bias=False),
        keras.layers.BatchNormalization(),
        keras.layers.ReLU(6.0),
        keras.layers.DepthwiseConv2D(3, strides=2, padding="same", activation="relu"),
        keras.layers.Conv2D(16, 1, activation="relu"),
        keras.layers.Reshape((4, 64)),
        keras.layers.Dense(16, activation="tanh"),
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax", name="scores"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images[:1500], labels[:1500], epochs=20, batch_size=64, verbose=0)
print("accuracy", model.evaluate(images[1500:], labels[1500:], verbose=0)[1])

signature = tf.TensorSpec((None, 8, 8, 1), tf.float32, name="image")
frozen = convert_variables_to_constants_v2(tf.function(model).get_concrete_function(signature))
tf2onnx.convert.from_graph_def(
    frozen.graph.as_graph_def(),
    input_names=[tensor.name for tensor in frozen.inputs],
    output_names=[tensor.name for tensor in frozen.outputs],
    opset=17,
    output_path=sys.argv[1],
)

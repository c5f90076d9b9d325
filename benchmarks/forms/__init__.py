"""Networks in forms that the other tables lack, as today's exporters write them, small and large; seeded weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import onnx
from zoo.quantised import dynamically_quantised

from .attention import gated_attention, t5_encoder, whisper_encoder
from .pictures import deformable_tail, encoder_decoder_2d, shuffled_squeeze, style_transfer, unet_einsum
from .recurrent import (
    additive_attention,
    conv_recurrent,
    crnn,
    crnn_nodes,
    lstm_autoencoder,
    recogniser,
    recurrent_layers,
    spectrogram_lstm,
    unrolled_lstm,
)  # fmt: skip
from .sequences import causal_conv, circular_conv, embedded_conv, encoder_decoder_1d, reflected_conv


def _quantised(build: Callable[..., onnx.ModelProto], **sizes: int) -> onnx.ModelProto:
    return dynamically_quantised(build(**sizes))


#: by form, the larger network's sizes; the smaller one has the defaults of its function
_LARGER: dict[Callable[..., onnx.ModelProto], dict[str, int]] = {
    causal_conv: {"channels": 32, "length": 2000, "layers": 8},
    circular_conv: {"channels": 48, "length": 3000},
    reflected_conv: {"channels": 64, "length": 1000},
    encoder_decoder_1d: {"channels": 32, "length": 8192},
    embedded_conv: {"width": 64, "tokens": 400},
    encoder_decoder_2d: {"channels": 32, "side": 80},
    unet_einsum: {"channels": 32, "side": 48},
    style_transfer: {"channels": 16, "side": 96, "blocks": 3},
    shuffled_squeeze: {"channels": 116, "side": 28, "units": 6},
    deformable_tail: {"channels": 64, "side": 40, "queries": 100},
    t5_encoder: {"width": 192, "tokens": 64, "layers": 3, "heads": 6, "opset": 18},
    whisper_encoder: {"width": 192, "frames": 400, "heads": 6, "opset": 20},
    gated_attention: {"width": 192, "tokens": 128},
    spectrogram_lstm: {"channels": 32, "units": 64},
    unrolled_lstm: {"frames": 40, "bins": 80, "units": 64},
    crnn: {"channels": 32, "high": 32, "wide": 100, "units": 48},
    recogniser: {"channels": 16, "wide": 320, "units": 48},
    additive_attention: {"width": 96, "tokens": 64},
}
#: recurrent networks in the sizes of speech and text models: the nodes are the exporters', of PyTorch and of Keras (reset
#: before the product)
_RECURRENT: dict[str, Callable[[], onnx.ModelProto]] = {
    "gru_denoiser": partial(
        recurrent_layers, "GRU", 400, 50, 161, layers=2, before=400, classes=161, linear_before_reset=1
    ),
    "bigru_tagger": partial(recurrent_layers, "GRU", 128, 64, 128, directions=2, words=500, linear_before_reset=1),
    "bigru_speech": partial(recurrent_layers, "GRU", 192, 80, 80, layers=2, directions=2, linear_before_reset=1),
    "lstm_words": partial(recurrent_layers, "LSTM", 256, 35, 256, layers=2, words=500, classes=500),
    "bilstm_speech": partial(recurrent_layers, "LSTM", 192, 80, 80, layers=3, directions=2, classes=32),
    "batched_gru": partial(recurrent_layers, "GRU", 128, 40, 96, batch=4, linear_before_reset=1),
    "rnn_words": partial(recurrent_layers, "RNN", 256, 60, 128, words=300),
    "one_step_gru": partial(recurrent_layers, "GRU", 400, 1, 400, layers=2, linear_before_reset=1),
    "conv_lstm": partial(conv_recurrent, "LSTM", 64, 128, 100, 40),
    "conv_gru": partial(conv_recurrent, "GRU", 48, 154, 100, 40),
    "lstm_autoencoder": lstm_autoencoder,
    "int8-crnn_nodes": partial(_quantised, crnn_nodes),
}
#: networks by name
FORMS: dict[str, Callable[[], onnx.ModelProto]] = {
    f"{build.__name__}{'-large' * large}": partial(build, **(sizes if large else {}))
    for build, sizes in _LARGER.items()
    for large in (False, True)
} | {
    "int8-t5_encoder": partial(_quantised, t5_encoder),
    "int8-whisper_encoder": partial(_quantised, whisper_encoder, width=192, frames=200, heads=6),
    "int8-additive_attention": partial(_quantised, additive_attention, width=64),
    "int8-encoder_decoder_2d": partial(_quantised, encoder_decoder_2d, channels=16, side=40),
    **_RECURRENT,
}

"""Read a picture or a sound as the bytes of an input of its own size; nothing is resized, scaled or mixed."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

from ..errors import ConfigError
from .fit_value import CONVERT, InputForm

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm")
SOUNDS = (".wav",)
#: modes of a picture by its channels, and modes that become one without loss
_MODES = {1: ("L", ("1",)), 3: ("RGB", ("L", "1", "P")), 4: ("RGBA", ("RGB", "L", "1", "P", "PA"))}
#: dtypes of sounds by the bytes of an element
_SOUND_TYPES = {1: "uint8", 2: "<i2", 4: "<i4"}


def read_picture(path: Path, form: InputForm, where: str) -> np.ndarray:
    """Read a picture in the layout of an input of bytes. Raises ConfigError for another size, kind or dtype."""
    from PIL import Image, UnidentifiedImageError

    if form.dtype != np.uint8:
        raise ConfigError(f"{where}: a picture is uint8, input '{form.name}' takes {form}.", CONVERT)
    try:
        with Image.open(path) as picture:
            picture.load()
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise ConfigError(f"{where}: the picture cannot be read: {error}.", "Export it again.") from error
    sides = (picture.height, picture.width)
    for channels, axis in _layouts(form.shape, sides):
        mode, admitted = _MODES[channels]
        transparent = picture.mode in ("P", "PA") and "transparency" in picture.info
        if picture.mode != mode and (picture.mode not in admitted or (transparent and mode != "RGBA")):
            raise ConfigError(
                f"{where}: the picture is {picture.mode}, input '{form.name}' takes {mode}.",
                "Convert the files, or give a `FILE.py:function` that does.",
            )
        pixels = np.asarray(picture if picture.mode == mode else picture.convert(mode)).reshape(*sides, channels)
        return (pixels if axis == "last" else pixels.transpose(2, 0, 1)).reshape(form.shape)
    raise ConfigError(
        f"{where}: the picture has {sides[0]} rows and {sides[1]} columns, input '{form.name}' takes {form}.",
        "Resize the files, or give a `FILE.py:function` that does.",
    )


def _layouts(shape: tuple[int, ...], sides: tuple[int, int]) -> list[tuple[int, str]]:
    """List the layouts of a picture that fit a shape: number of channels, and their axis."""
    inner = shape[1:] if len(shape) == 4 and shape[0] == 1 else shape
    inner = inner[1:] if len(inner) == 3 and inner[0] == 1 else inner
    if inner == sides:
        return [(1, "last")]
    if len(inner) != 3:
        return []
    last = [(inner[2], "last")] if inner[:2] == sides else []
    first = [(inner[0], "first")] if inner[1:] == sides else []
    return [each for each in (*last, *first) if each[0] in _MODES]


def read_sound(path: Path, form: InputForm, where: str) -> np.ndarray:
    """Read a sound in the shape of an input of its own integers. Raises ConfigError for another length or dtype."""
    try:
        with wave.open(str(path), "rb") as sound:
            width, channels, frames = sound.getsampwidth(), sound.getnchannels(), sound.getnframes()
            content = sound.readframes(frames)
    except (OSError, EOFError, wave.Error) as error:
        raise ConfigError(f"{where}: the sound cannot be read: {error}.", "Export it as PCM.") from error
    kind = np.dtype(_SOUND_TYPES.get(width, "V3"))
    if kind != form.dtype.newbyteorder("<"):
        raise ConfigError(
            f"{where}: the sound has integers of {8 * width} bits, input '{form.name}' takes {form}.", CONVERT
        )
    values = np.frombuffer(content, kind).reshape(-1, channels).astype(form.dtype)
    sizes = [each for each in form.shape if each != 1]
    for laid_out in (values, values.T):
        if [each for each in laid_out.shape if each != 1] == sizes:
            return laid_out.reshape(form.shape)
    raise ConfigError(
        f"{where}: the sound has {len(values)} frames of {channels} channels, input '{form.name}' takes {form}.",
        "Cut the files to that length, or give a `FILE.py:function` that does.",
    )

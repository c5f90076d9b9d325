"""Samples read from each form of source: the same ones, without loss, or refused with the place and a next step."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from passfit.data.samples import InputForm, read_samples, source_digest, spread
from passfit.errors import ConfigError

FLOATS = InputForm("x", np.dtype("float32"), (1, 2, 3))
PIXELS = InputForm("pixels", np.dtype("uint8"), (1, 4, 5, 3))


def write_function(folder: Path, body: str, name: str = "load.py") -> str:
    (folder / name).write_text(f"import numpy as np\n\n\ndef samples():\n{body}")
    return f"{folder / name}:samples"


@settings(max_examples=25, deadline=None)
@given(
    values=hnp.arrays(
        np.float32, st.tuples(st.integers(1, 5), st.just(2), st.just(3)), elements=st.floats(-9, 9, width=32)
    ),
    data=st.data(),
)
def test_every_source_gives_the_same_samples(values: np.ndarray, data: st.DataObject, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    labels = data.draw(hnp.arrays(np.int64, len(values), elements=st.integers(0, 3)))
    np.savez(folder / "named.npz", x=values, labels=labels)
    np.savez_compressed(folder / "other.npz", anything=values, y=labels)
    np.save(folder / "plain.npy", values)
    np.save(folder / "plain.labels.npy", labels)
    for name in ("files", "table", "lines", "classes"):
        (folder / name).mkdir()
    for number, (value, label) in enumerate(zip(values, labels)):
        np.savez(folder / "files" / f"{number:03}.npz", x=value, label=label)
        for name in ("table", "lines"):
            np.save(folder / name / f"{number:03}.npy", value)
    (folder / "table" / "labels.csv").write_text(
        "file,label\n" + "".join(f"{number:03}.npy,{label}\n" for number, label in enumerate(labels))
    )
    (folder / "lines" / "labels.txt").write_text("".join(f"{label}\n" for label in labels))
    np.save(folder / "all.npy", values)
    function = write_function(
        folder, f"    yield from zip(np.load({str(folder / 'plain.npy')!r}), {labels.tolist()})\n"
    )
    for name in ("named.npz", "other.npz", "plain.npy", "files", "table", "lines"):
        check(read_samples(folder / name, [FLOATS]), values, labels)
    check(read_samples(function, [FLOATS]), values, labels)
    unlabelled = read_samples(folder / "all.npy", [FLOATS])
    check(unlabelled, values, [None] * len(values))


def check(samples, values, labels):
    order = [*range(samples.count), *reversed(range(samples.count))]
    assert len(samples) == len(values)
    for number in order:
        found = samples.inputs(number)["x"]
        assert (found.dtype, found.shape) == (np.float32, FLOATS.shape)
        assert np.array_equal(found[0], values[number])
        assert samples.label(number) == labels[number]


def test_the_digest_is_that_of_the_content_alone(tmp_path):
    values = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    for place in ("a", "b"):
        (tmp_path / place / "files").mkdir(parents=True)
        np.savez_compressed(tmp_path / place / "x.npz", x=values) if place == "a" else np.savez(
            tmp_path / place / "x.npz", x=values
        )
        for number, value in enumerate(values):
            np.save(tmp_path / place / "files" / f"{number}.npy", value)
        write_function(tmp_path / place, f"    yield np.arange(6).reshape(2, 3)  # {place}\n")
    for name in ("x.npz", "files", "load.py:samples"):
        one, other = (source_digest(f"{tmp_path}/{place}/{name}") for place in ("a", "b"))
        assert one == other == read_samples(f"{tmp_path}/a/{name}", [FLOATS]).digest
    before = source_digest(tmp_path / "a" / "x.npz")
    np.savez(tmp_path / "a" / "x.npz", x=values + 1)
    assert source_digest(tmp_path / "a" / "x.npz") != before


def test_folders_are_classes_in_the_order_of_their_names(tmp_path):
    for number, name in enumerate(("dog", "cat", "emu")):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", np.full((2, 3), number, np.float32))
    samples = read_samples(tmp_path, [FLOATS])
    assert [samples.name(each) for each in range(3)] == ["cat/a.npy", "dog/a.npy", "emu/a.npy"]
    assert [samples.label(each) for each in range(3)] == [0, 1, 2]
    assert samples.classes == ("cat", "dog", "emu")


def test_folders_named_by_numbers_are_those_classes(tmp_path):
    for name in ("2", "10"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", np.zeros((2, 3), np.float32))
    samples = read_samples(tmp_path, [FLOATS])
    assert ([samples.label(0), samples.label(1)], samples.classes) == ([10, 2], ())


@pytest.mark.parametrize(
    ("shape", "axes"), [((1, 4, 5, 3), (0, 1, 2)), ((1, 3, 4, 5), (2, 0, 1)), ((4, 5, 3), (0, 1, 2))]
)
def test_pictures_fit_bytes_of_their_size(tmp_path, shape, axes):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 5, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    found = read_samples(tmp_path, [InputForm("pixels", np.dtype("uint8"), shape)]).inputs(0)["pixels"]
    assert np.array_equal(found, pixels.transpose(axes).reshape(shape))


@pytest.mark.parametrize("shape", [(1, 4, 5, 1), (1, 1, 4, 5), (4, 5)])
def test_grey_pictures_fit_one_channel(tmp_path, shape):
    pixels = np.arange(20, dtype=np.uint8).reshape(4, 5)
    Image.fromarray(pixels).save(tmp_path / "a.pgm.png")
    found = read_samples(tmp_path, [InputForm("x", np.dtype("uint8"), shape)]).inputs(0)["x"]
    assert np.array_equal(found, pixels.reshape(shape))


def write_sound(path: Path, values: np.ndarray) -> None:
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(values.shape[1])
        sound.setsampwidth(2)
        sound.setframerate(16000)
        sound.writeframes(values.astype("<i2").tobytes())


@pytest.mark.parametrize(("shape", "transposed"), [((1, 30, 2), False), ((1, 2, 30), True)])
def test_sounds_fit_integers_of_their_length(tmp_path, shape, transposed):
    values = np.random.default_rng(0).integers(-32768, 32768, (30, 2))
    write_sound(tmp_path / "a.wav", values)
    found = read_samples(tmp_path, [InputForm("x", np.dtype("int16"), shape)]).inputs(0)["x"]
    assert np.array_equal(found, (values.T if transposed else values).reshape(shape))


@pytest.mark.parametrize(
    ("given", "wanted", "kept"),
    [
        (np.uint8([[0, 1, 255], [3, 4, 5]]), "int32", True),
        (np.int64([[0, 1, 2], [3, 4, 5]]), "int32", True),
        (np.int64([[0, 1, 1 << 40], [3, 4, 5]]), "int32", False),
        (np.uint8([[0, 1, 2], [3, 4, 5]]), "int8", False),
        (np.float32([[0, 1, 2], [3, 4, 5]]), "int32", False),
        (np.float32([[0, 1, 2], [3, 4, 0.1]]), "float16", False),
        (np.float64([[0, 1, 2], [3, 4, 0.1]]), "float32", True),
        (np.float64([[0, 1, 2], [3, 4, 1e300]]), "float32", False),
        (np.complex64([[0, 1, 2], [3, 4, 5]]), "float32", False),
        (np.array([["a"] * 3] * 2), "float32", False),
    ],
)
def test_casts_lose_nothing_or_are_refused(tmp_path, given, wanted, kept):
    np.save(tmp_path / "x.npy", given[None])
    samples = read_samples(tmp_path / "x.npy", [InputForm("x", np.dtype(wanted), (1, 2, 3))])
    if kept:
        assert np.array_equal(samples.inputs(0)["x"][0], given.astype(wanted))
        assert bool(samples.remarks) == (given.dtype == np.float64)
    else:
        with pytest.raises(ConfigError, match=f"sample 0: input 'x' is {given.dtype}, the model takes {wanted}"):
            samples.inputs(0)


def read_all(source, *forms: InputForm) -> None:
    samples = read_samples(source, forms or (FLOATS,))
    for number in range(samples.count):
        samples.inputs(number)
        samples.label(number)


def refuse(source, match: str, *forms: InputForm) -> None:
    with pytest.raises(ConfigError, match=match) as error:
        read_all(source, *forms)
    assert error.value.hint


def save(folder: Path, **arrays: np.ndarray) -> Path:
    np.savez(folder / "x.npz", **arrays)
    return folder / "x.npz"


GOOD = np.zeros((2, 2, 3), np.float32)


def test_arrays_that_do_not_fit_are_refused(tmp_path):
    refuse(tmp_path / "none.npz", "are missing")
    (tmp_path / "notes.md").write_text("")
    refuse(tmp_path / "notes.md", "no form of samples")
    (tmp_path / "broken.npz").write_bytes(b"PK no archive")
    refuse(tmp_path / "broken.npz", "cannot be read")
    refuse(save(tmp_path, x=np.array([{}, {}])), "objects, not numbers")
    refuse(
        save(tmp_path, x=np.zeros((2, 3, 2), np.float32)),
        r"sample 0: input 'x' is float32\[3, 2\], the model takes float32\[1, 2, 3\]",
    )
    refuse(save(tmp_path, x=GOOD * np.nan), r"sample 0: input 'x' is NaN at \[0, 0, 0\]")
    refuse(save(tmp_path, x=GOOD[:0]), "has no samples")
    refuse(save(tmp_path, x=GOOD, labels=np.zeros(3)), "'x' has 2, 'labels' has 3")
    refuse(save(tmp_path, x=GOOD, labels=[0, np.nan]), "sample 1: the label is NaN")
    refuse(save(tmp_path, x=GOOD, lables=np.zeros(2)), "'lables' is not an input; those are x")
    refuse(save(tmp_path, x=np.float32(1)), "'x' is a single number")
    second = InputForm("y", np.dtype("int64"), (1,))
    refuse(save(tmp_path, x=GOOD), "there is no input 'y'; it has 'x'", FLOATS, second)
    refuse(save(tmp_path, x=GOOD), "set --shape x=1x2x3", InputForm("x", FLOATS.dtype, (4, 2, 3)))


def test_an_input_may_be_called_like_labels(tmp_path):
    forms = [FLOATS, InputForm("y", np.dtype("int64"), (1,))]
    samples = read_samples(save(tmp_path, x=GOOD, y=np.arange(2), target=np.arange(2) + 5), forms)
    assert (samples.inputs(1)["y"].tolist(), samples.label(1)) == ([1], 6)


def test_folders_that_do_not_fit_are_refused(tmp_path):
    refuse(tmp_path, "has no samples")
    np.save(tmp_path / "a.npy", GOOD[0])
    (tmp_path / "labels.csv").write_text("b.npy,1\n")
    refuse(tmp_path, "no label for 'a.npy'")
    (tmp_path / "labels.csv").write_text("a.npy,1\nb.npy,1\n")
    refuse(tmp_path, "a label for 'b.npy', which is missing")
    (tmp_path / "labels.csv").write_text("a.npy,1\na.npy,2\n")
    refuse(tmp_path, "two labels for 'a.npy'")
    (tmp_path / "labels.txt").write_text("1\n2\n")
    refuse(tmp_path, "both labels.csv and labels.txt")
    (tmp_path / "labels.csv").unlink()
    refuse(tmp_path, "2 labels for 1 files")
    (tmp_path / "labels.txt").unlink()
    (tmp_path / "dog").mkdir()
    refuse(tmp_path, "both folders and 'a.npy'")
    (tmp_path / "dog").rmdir()
    (tmp_path / "notes.md").write_text("")
    refuse(tmp_path, "sample notes.md: is no form of a sample")


def test_pictures_are_neither_resized_nor_converted(tmp_path):
    Image.fromarray(np.zeros((4, 5, 3), np.uint8)).save(tmp_path / "a.png")
    refuse(tmp_path, "a.png: the picture has 4 rows and 5 columns", InputForm("x", PIXELS.dtype, (1, 5, 4, 3)))
    refuse(tmp_path, "a.png: a picture is uint8", InputForm("x", FLOATS.dtype, (1, 4, 5, 3)))
    refuse(tmp_path, "the picture is RGB, input 'x' takes L", InputForm("x", PIXELS.dtype, (1, 4, 5, 1)))
    refuse(tmp_path, "is one input, the model takes 2", PIXELS, FLOATS)
    Image.fromarray(np.zeros((4, 5, 4), np.uint8)).save(tmp_path / "a.png")
    refuse(tmp_path, "the picture is RGBA, input 'pixels' takes RGB", PIXELS)
    (tmp_path / "a.png").write_bytes(b"no picture")
    refuse(tmp_path, "a.png: the picture cannot be read", PIXELS)


def test_sounds_are_neither_cut_nor_converted(tmp_path):
    write_sound(tmp_path / "a.wav", np.zeros((30, 1)))
    refuse(tmp_path, "a.wav: the sound has 30 frames of 1 channels", InputForm("x", np.dtype("int16"), (1, 31)))
    refuse(tmp_path, "a.wav: the sound has integers of 16 bits", InputForm("x", np.dtype("float32"), (1, 30)))
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    refuse(tmp_path, "a.wav: the sound cannot be read", InputForm("x", np.dtype("int16"), (1, 30)))


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("    yield np.zeros((2, 3), 'f')\n    raise RuntimeError('no disk')\n", "line 6: RuntimeError: no disk"),
        ("    return 3\n", "TypeError: 'int' object is not iterable"),
        ("    yield [[1], [2, 3]]\n", "sample 0: is not an array"),
        ("    yield from ()\n", "has no samples"),
        ("    yield np.random.default_rng().random((2, 3), np.float32)\n", "yields another sample when it runs again"),
        ("    yield np.zeros((2, 3), 'f'), 1, 2\n", "it has 3 values for 1 inputs"),
        ("    yield {'x': np.zeros((2, 3), 'f')}, object()\n", "sample 0: the label is <object"),
        ("    syntax error\n", "line 5: SyntaxError"),
    ],
)
def test_the_errors_of_a_function_name_its_line(tmp_path, body, match):
    refuse(write_function(tmp_path, body), match)


def test_a_function_that_is_missing_is_refused(tmp_path):
    refuse(f"{tmp_path}/none.py:samples", "is missing")
    write_function(tmp_path, "    yield 1\n")
    refuse(f"{tmp_path}/load.py:sample", "has no function 'sample'. Did you mean 'samples'")


def test_a_function_may_fill_one_array_again_and_again(tmp_path):
    body = "    x = np.zeros((2, 3), 'f')\n    for number in range(3):\n        x[:] = number\n        yield x\n"
    found = list(read_samples(write_function(tmp_path, body), [FLOATS]))
    assert [each["x"].max() for each in found] == [0, 1, 2]


def test_functions_yield_inputs_by_name_or_in_order(tmp_path):
    forms = [FLOATS, InputForm("n", np.dtype("int64"), ())]
    x = "np.zeros((2, 3), 'f')"
    for number, value in enumerate((f"{{'x': {x}, 'n': 7}}, 'dog'", f"{x}, 7, 'dog'", f"({x}, 7), 'dog'")):
        source = write_function(
            tmp_path, f"    yield {value}\n    yield {value.replace('dog', 'cat')}\n", f"load{number}.py"
        )
        samples = read_samples(source, forms)
        assert samples.inputs(1)["n"] == 7
        assert ([samples.label(0), samples.label(1)], samples.classes) == ([1, 0], ("cat", "dog"))


@given(count=st.integers(1, 2000), most=st.integers(1, 300), period=st.integers(2, 12))
def test_chosen_samples_are_spread_over_all(count: int, most: int, period: int):
    numbers = spread(count, most)
    assert len(set(numbers)) == min(count, most) and numbers == sorted(numbers) and numbers[0] == 0
    assert numbers[-1] < count and spread(count, None) == list(range(count))
    gaps = np.diff([*numbers, count])
    assert gaps.max() <= 3 * count / len(numbers) + 1
    if count > 20 * period and len(numbers) >= 5 * period:
        assert {number % period for number in numbers} == set(range(period))


@given(values=hnp.arrays(np.float32, (3, 2, 3), elements=st.floats(-9, 9, width=32)))
def test_floats_are_quantised_for_an_input_of_quantised_integers(values: np.ndarray, tmp_path_factory):
    folder = tmp_path_factory.mktemp("floats")
    np.save(folder / "x.npy", values)
    form = InputForm("x", np.dtype("int8"), (1, 2, 3), (0.05, -3))
    samples = read_samples(folder / "x.npy", [form])
    for number, value in enumerate(values):
        expected = np.clip(np.rint(value / np.float32(0.05)) - 3, -128, 127)
        assert np.array_equal(samples.inputs(number)["x"][0], expected.astype(np.int8))
    assert samples.remarks == ("input 'x': float32 is quantised by 0.05",)
    np.save(folder / "x.npy", values * np.nan)
    refuse(folder / "x.npy", "input 'x' is NaN", form)

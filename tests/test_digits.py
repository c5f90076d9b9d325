"""The samples that ship say the same as the arrays that the network learns from, and the same bytes each time."""

from __future__ import annotations

import numpy as np
from PIL import Image

from passfit.digits import LEARNT, load_digits, train_network, write_digits
from tests.models import run


def test_pictures_are_the_digits_by_class_and_the_network_knows_those_it_has_not_seen(tmp_path):
    for folder in (tmp_path / "one", tmp_path / "two"):
        write_digits(folder)
    one, two = (
        {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*.*")}
        for folder in (tmp_path / "one", tmp_path / "two")
    )
    assert one == two
    pictures, labels = load_digits()
    files = {kind: list((tmp_path / "one" / kind).glob("*/*.png")) for kind in ("train", "test")}
    assert {kind: len(found) for kind, found in files.items()} == {"train": LEARNT, "test": len(labels) - LEARNT}
    right = 0
    for file in files["test"]:
        read, number = np.asarray(Image.open(file), np.float32)[None] / 240, int(file.stem)
        assert np.array_equal(read, pictures[number]) and file.parent.name == str(labels[number])
        (scores,) = run(train_network(), {"x": read[None]})
        right += int(scores.argmax() == labels[number])
    assert right > 0.92 * len(files["test"])

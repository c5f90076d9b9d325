"""Make seeded inputs for verification: plausible for the dtype, and legal for the operators that read them."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..data.samples import read_samples, spread
from ..frontend.canonical.clean_names import free_inputs
from ..frontend.input_forms import input_dtype, input_forms, input_shape
from .draws.constraint import Constraint, Strength
from .draws.draw_forms import draw_form
from .draws.draw_values import draw_floats, draw_integers
from .draws.input_constraints import input_constraints
from .settings import UserSamples

if TYPE_CHECKING:
    import onnx


#: samples of the user's that a library is compared on
SAMPLES = 8
#: kinds of `draws.constraint.Form` in words
_FORMS = {
    "distinct": "positions at random, all different",
    "unique": "positions at random, all different",
    "coordinates": "coordinates at random",
    "places": "coordinates at random, all different",
    "boxes": "boxes at random within the picture",
    "rois": "boxes at random within the picture",
    "mask": "0 and 1 at random, the first of a row 1",
    "hides": "0 and 1 at random, the first of a row 0",
    "additive": "random numbers, or 0 and a very negative one as a mask",
    "sparse": "random values, of which none, one or half are chosen",
    "exact": "the only values that the operators take",
    "shape": "the shape of any tensor",
}


class InputDraws:
    """Draws of a model's inputs, by seed and case: the model is analysed once."""

    def __init__(self, model: onnx.ModelProto):
        """Find the constraints of the inputs."""
        self._inputs = free_inputs(model)
        self._constraints = input_constraints(model)

    def draw(self, seed: int, case: int) -> dict[str, np.ndarray]:
        """Make one set of inputs by name, determined by seed, case, names, shapes, dtypes and constraints.

        Raises ModelError for an unsupported dtype or a dynamic shape.
        """
        made = {value.name: _values(value, seed, case, self._constraints.get(value.name)) for value in self._inputs}
        # arithmetic on a 0-d array gives a scalar, which ONNX Runtime rejects
        return {name: np.asarray(value) for name, value in made.items()}


def make_input(model: onnx.ModelProto, seed: int, case: int) -> dict[str, np.ndarray]:
    """Draw inputs by name from seed, case, shapes, dtypes and the operators that read them.

    Floats are, depending on the case, standard normal, uniform in [0, 1), or bars and patches of 0 and 1; integers are
    bytes of the whole range, 0 and 1, small, or large. Operators bound them: indices stay in range, lengths within their
    axis, divisors differ from 0, arguments are in the domain of the function. Raises ModelError for an unsupported dtype
    or a dynamic shape.
    """
    return InputDraws(model).draw(seed, case)


def read_user_samples(data: str | Path, model: onnx.ModelProto) -> UserSamples:
    """Read SAMPLES of the user's samples, evenly spread. Raises ConfigError, ModelError."""
    samples = read_samples(data, input_forms(model))
    numbers = spread(samples.count, SAMPLES)
    return UserSamples({samples.name(number): samples.inputs(number) for number in numbers}, samples.digest)


def assumed_inputs(model: onnx.ModelProto) -> dict[str, str]:
    """Describe seeded values by input, if random ones mean little there: integers, masks, positions."""
    constraints = input_constraints(model)
    found = {}
    for form in input_forms(model):
        constraint = constraints.get(form.name)
        kind = "" if constraint is None or constraint.form is None else constraint.form.kind
        if words := _FORMS.get(kind):
            found[form.name] = words
        elif form.dtype == np.bool_:
            found[form.name] = "true and false at random"
        elif form.dtype.kind in "iu" and form.dtype.itemsize > 1:
            bounded = constraint is not None and math.isfinite(constraint.low) and math.isfinite(constraint.high)
            reach = (
                f", from {constraint.low:.0f} to {constraint.high:.0f}" if constraint is not None and bounded else ""
            )
            found[form.name] = f"whole numbers at random{reach}"
    return found


def _values(value: onnx.ValueInfoProto, seed: int, case: int, constraint: Constraint | None) -> np.ndarray:
    shape, dtype = input_shape(value), input_dtype(value)
    generator = _generator(seed, case, value.name, shape, dtype)
    if dtype == np.bool_:
        form = None if constraint is None else constraint.form
        masks = form is not None and form.kind in ("mask", "hides", "sparse")
        formed = draw_form(generator, shape, form, 0, 1, case) if form is not None and masks else None
        return (generator.integers(0, 2, shape) if formed is None else formed).astype(dtype)
    if dtype.kind in "iu" or dtype.name in ("int4", "uint4"):
        narrow = dtype.itemsize == 1 and constraint is not None and constraint.strength < Strength.UNDEFINED
        return draw_integers(generator, shape, dtype, case, None if narrow else constraint)
    return draw_floats(generator, shape, case, constraint).astype(dtype)


def _generator(seed: int, case: int, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.random.Generator:
    """Create a generator per input and case, so that inputs do not depend on each other."""
    digest = hashlib.sha256(f"{name}|{shape}|{dtype}".encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.Generator(np.random.PCG64([seed, case, math.prod(shape), *words]))

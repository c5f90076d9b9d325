"""Test the laws of weights in several memories."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from passfit.memory.placement.place_weights import RESERVE, homes_of, place_weights
from passfit.memory.placement.plan_banks import Room
from passfit.program import Step, Tensor, Weight
from passfit.targets import get_target
from passfit.targets.memory import Memory

from ...strategies import chain


def program(*sizes: int, often: int = -1):
    """Make a chain of two kernels that read weights of these bytes, one of them in both."""
    found, count = chain(64, 64, 64), len(sizes)
    tensors = tuple(Tensor((size,), "uint8", weight=number) for number, size in enumerate(sizes))
    reads = tuple(range(3, 3 + count))
    again = (3 + often,) if often >= 0 else ()
    return replace(
        found, tensors=(*found.tensors, *tensors), weights=tuple(Weight(f"w{number}", size, str(number)) for number, size in enumerate(sizes)),
        steps=(Step("k0", (0, *reads), (1,)), Step("k1", (1, *again), (2,))),
    )  # fmt: skip


@given(st.lists(st.integers(1, 500), min_size=1, max_size=8), st.lists(st.integers(0, 16), min_size=1, max_size=3))
def test_every_weight_is_whole_in_one_memory_and_only_the_last_overflows(sizes, pieces):
    rooms = [Room(f"m{number}", piece * 64) for number, piece in enumerate(pieces)]
    homes = homes_of(program(*sizes), rooms)
    assert len(homes) == len(sizes) and set(homes) <= {room.region for room in rooms}
    for room in rooms[:-1]:
        assert (
            sum(-(-size // 64) * 64 for size, home in zip(sizes, homes, strict=True) if home == room.region)
            <= room.size
        )


def test_the_busiest_weight_then_the_smallest_are_in_the_first_memory():
    rooms = [Room("internal", 320), Room("external", 4096)]
    assert homes_of(program(192, 64, 128, often=0), rooms) == ("internal", "internal", "external")
    assert homes_of(program(192, 64, 128), rooms) == ("external", "internal", "internal")


def test_weights_stay_together_where_one_flash_holds_them():
    target, found = get_target("mps2-an386"), program(1024, 2048)
    assert place_weights(found, target, 100) == ()
    flash, *rest = target.memories
    two = replace(
        target, memories=(replace(flash, size=RESERVE + 100 + 3072), Memory("qspi", "flash", 4096, 0x90000000), *rest)
    )
    assert place_weights(found, two, 100) == () and place_weights(found, two, 101) == ("ssram1", "qspi")

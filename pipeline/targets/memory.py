"""Describe the memories of a device without an operating system, and read them from the catalogue."""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal, get_args

from ..errors import PassfitError, TargetError, did_you_mean
from ..support.sizes import parse_size

Kind = Literal["ram", "flash"]
#: addresses of Arm-M cores without memory: what is there, first, behind the last, and whether data may be there still
_NO_MEMORY = (
    ("peripherals", 0x40000000, 0x60000000, False),
    ("devices that hold no code", 0xA0000000, 0xE0000000, True),
    ("its own registers", 0xE0000000, 1 << 32, False),
)


@dataclass(frozen=True)
class Memory:
    """Memory of a device: `size` bytes from the address `start`.

    `kind` says what it holds: "ram" data, and "flash" code and weights, which keep their content without power.
    `wait_states` are the cycles that a read takes beyond the first at the rated clock of the core; None where a cache or a
    serial bus is between, so that no one number holds. `room` is a budget: the bytes of it that a library may use, if not all.
    """

    name: str
    kind: Kind
    size: int
    start: int
    wait_states: int | None = None
    room: int | None = None

    @property
    def end(self) -> int:
        """Return the address behind the last byte."""
        return self.start + self.size

    @property
    def usable(self) -> int:
        """Return the bytes that a library may use."""
        return self.size if self.room is None else min(self.size, self.room)

    @property
    def slowness(self) -> tuple[bool, int]:
        """Return a key that sorts memories by the time of a read, the fastest first."""
        return self.wait_states is None, self.wait_states or 0


def read_memories(value: Any, where: str) -> tuple[Memory, ...]:
    """Read the key `memories` of a target: a list of tables. Raises TargetError, whose message starts with `where`."""
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        raise TargetError(
            f"{where}: memories is {value!r}.",
            'Give tables such as {name = "sram", kind = "ram", size = "64KiB", start = 0x20000000}.',
        )
    memories = tuple(_memory(each, f"{where}: memory {number}") for number, each in enumerate(value))
    if len({each.name for each in memories}) < len(memories):
        raise TargetError(f"{where}: two memories have one name.", "Give each its own.")
    for kind in get_args(Kind):
        if kind not in {each.kind for each in memories}:
            raise TargetError(f"{where}: no memory is of the kind {kind}.", "Give one of each kind.")
        # a budget of that name limits all memories of the kind
        if any(each.name == kind and (each.kind != kind or len(select_kind(memories, kind)) > 1) for each in memories):
            raise TargetError(
                f"{where}: one of several memories is called '{kind}', which means all of the kind {kind}.",
                f"Call it {kind}1.",
            )
    placed = sorted(memories, key=lambda each: each.start)
    for one, other in pairwise(placed):
        if one.end > other.start:
            raise TargetError(
                f"{where}: the memories '{one.name}' (to {one.end:#x}) and '{other.name}' (from {other.start:#x}) overlap.",
                "Give each byte to one of them.",
            )
    return memories


def refuse_devices(memories: tuple[Memory, ...], where: str) -> None:
    """Refuse memories at addresses that an Arm-M core has for devices and itself. Raises TargetError."""
    for each in memories:
        for what, start, end, code_only in _NO_MEMORY:
            if each.start < end and start < each.end and (each.kind == "flash" or not code_only):
                raise TargetError(
                    f"{where}: the memory '{each.name}' ({each.start:#x} to {each.end:#x}) is where a Cortex-M has {what}.",
                    "Check its start and size in the device's manual.",
                )


def select_kind(memories: tuple[Memory, ...], kind: Kind) -> tuple[Memory, ...]:
    """Return the memories of a kind, in order."""
    return tuple(each for each in memories if each.kind == kind)


def first_of(memories: tuple[Memory, ...], kind: Kind) -> Memory:
    """Return the first memory of a kind: that of the stack and of all small data, or that of the code."""
    return select_kind(memories, kind)[0]


def place_on(memories: tuple[Memory, ...], board: tuple[Memory, ...]) -> tuple[Memory, ...]:
    """Return the memories of a device, by name, at the places that a board has for them.

    The first of a kind is in the board's first, and so on; those left over are in its last, one behind the other. The last
    in each takes all that is left of it.
    """
    found = []
    for kind in get_args(Kind):
        places, named = select_kind(board, kind), select_kind(memories, kind)
        for number, place in enumerate(places):
            inside = named[number:] if number == len(places) - 1 else named[number : number + 1]
            start, end = place.start, place.start + place.size
            for each in inside:
                size = end - start if each is inside[-1] else min(each.size, end - start)
                found.append(Memory(each.name, kind, size, start, place.wait_states))
                start += size
    order = {each.name: number for number, each in enumerate(memories)}
    return tuple(sorted(found, key=lambda each: order[each.name]))


def _memory(entry: dict[str, Any], where: str) -> Memory:
    known = [each.name for each in fields(Memory) if each.name != "room"]
    for key in entry:
        if key not in known:
            raise TargetError(f"{where} has the unknown key '{key}'.", did_you_mean(key, known))
    if missing := [key for key in known if key not in entry and key != "wait_states"]:
        raise TargetError(f"{where} lacks the keys {', '.join(missing)}.", "Add them.")
    name, kind, size = entry["name"], entry["kind"], entry["size"]
    if not isinstance(name, str) or not name:
        raise TargetError(f"{where}: name is {name!r}.", "Give a text in quotes.")
    if kind not in get_args(Kind):
        raise TargetError(f"{where}: kind is {kind!r}.", did_you_mean(str(kind), get_args(Kind)))
    where = f"{where}, '{name}'"
    numbers = {key: entry[key] for key in ("start", "wait_states") if key in entry}
    for key, number in numbers.items():
        if type(number) is not int or number < 0:
            raise TargetError(f"{where}: {key} is {number!r}.", "Give a whole number of at least 0.")
    try:
        nbytes = parse_size(size) if isinstance(size, (int, str)) and not isinstance(size, bool) else 0
    except PassfitError as error:
        raise TargetError(f"{where}: size: {error.what}", error.hint) from error
    if nbytes <= 0 or numbers["start"] + nbytes > 1 << 32:
        raise TargetError(
            f"{where}: size is {size!r} from {numbers['start']:#x}.",
            "Give a size above zero, within 32 bits of address.",
        )
    return Memory(name, kind, nbytes, **numbers)

"""Check that equal runs of steps are those a shifted copy of the program would have."""

from hypothesis import given
from hypothesis import strategies as st

from passfit.memory.streaming.partitioner import Partitioner
from passfit.memory.streaming.rematerialise import equal_offsets

from ..rowwise import RowBuilder, row_programs


@given(row_programs(), st.data())
def test_equal_runs_lie_apart_and_have_equal_steps(case, data):
    program, splits = case
    last = data.draw(st.integers(0, len(program.steps) - 1))
    first = data.draw(st.integers(0, last))
    offsets = list(equal_offsets(Partitioner(program, splits, 64), first, last))
    assert all(after - before > last - first for before, after in zip([0, *offsets], offsets))
    for offset in offsets:
        assert last + offset < len(program.steps)
        made = {tensor: number for number, step in enumerate(program.steps) for tensor in step.writes}
        for number in range(first, last + 1):
            ours, theirs = program.steps[number], program.steps[number + offset]
            assert splits[ours.kernel].key == splits[theirs.kernel].key
            for mine, other in zip(ours.reads + ours.writes, theirs.reads + theirs.writes, strict=True):
                assert program.tensors[mine].shape == program.tensors[other].shape
                if made.get(mine, -1) >= first:
                    assert made[other] == made[mine] + offset


def test_every_layer_is_found_and_no_other():
    builder = RowBuilder()
    x = builder.tensor(8, 4)
    for rows in (16, 16, 12, 16):
        x = builder.resize(builder.resize(builder.window(x, size=3, pad=1), rows), 8)
    paths = Partitioner(*builder.program(), 64)
    assert list(equal_offsets(paths, 0, 2)) == [3, 9]
    assert list(equal_offsets(paths, 6, 8)) == []
    assert list(equal_offsets(paths, 2, 3)) == [3]  # the third layer begins alike

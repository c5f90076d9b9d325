"""The key of a form tells programs apart by all but their names."""

from dataclasses import replace

from hypothesis import given

from passfit.program.form import form_key

from ..memory.rowwise import row_programs


def named(program, word):
    return replace(
        program,
        name=word,
        buffers=tuple(replace(each, name=word) for each in program.buffers),
        inputs=tuple(replace(each, name=word) for each in program.inputs),
        outputs=tuple(replace(each, name=word) for each in program.outputs),
    )


@given(row_programs(most=6))
def test_names_do_not_count(case):
    program, splits = case
    assert form_key(named(program, "other"), splits) == form_key(program, splits)


@given(row_programs(most=6))
def test_sizes_steps_and_splits_count(case):
    program, splits = case
    first = program.buffers[0]
    others = [
        (replace(program, buffers=(replace(first, nbytes=first.nbytes + 1), *program.buffers[1:])), splits),
        (replace(program, steps=program.steps[:-1]), splits),
        (replace(program, outputs=program.inputs, inputs=program.outputs), splits),
        (program, {name: replace(each, work=each.work + 1) for name, each in splits.items()}),
        (program, {name: replace(each, rows=()) for name, each in splits.items()}),
        (replace(program, tensors=(replace(program.tensors[0], dtype="int32"), *program.tensors[1:])), splits),
    ]
    keys = {form_key(*each) for each in [(program, splits), *others]}
    plain = all(not each.rows for each in splits.values())
    assert len(keys) == len(others) + 1 - plain

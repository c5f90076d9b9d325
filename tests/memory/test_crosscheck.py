"""Compare planner and scheduler with an independent constraint solver; `pip install passfit[crosscheck]`."""

import pytest

from passfit.memory import best_order
from passfit.memory.liveness import aligned
from passfit.memory.order.step_graph import step_graph
from passfit.memory.placement.greedy import loads, place_greedily

from . import networks
from .cut_rectangles import guillotine, loosened

cp_model = pytest.importorskip("ortools.sat.python.cp_model", reason="the extra `crosscheck` is not installed")


def solved(model):
    """Return the least value of the objective. One worker: the same search on every machine."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    return round(solver.objective_value)


def least_height(boxes):
    model = cp_model.CpModel()
    most = sum(box.size for box in boxes)
    height = model.new_int_var(max(loads(boxes)), most, "height")
    times, places = [], []
    for number, box in enumerate(boxes):
        low = model.new_int_var(0, most, f"low{number}")
        times.append(model.new_fixed_size_interval_var(box.start, box.length, f"time{number}"))
        places.append(model.new_fixed_size_interval_var(low, box.size, f"place{number}"))
        model.add(low + box.size <= height)
    model.add_no_overlap_2d(times, places)
    model.minimize(height)
    return solved(model)


def least_peak(program):
    """Return the least peak: a buffer lasts from first writer to last reader, steps are numbered by order."""
    model = cp_model.CpModel()
    count = len(program.steps)
    place = [model.new_int_var(0, count - 1, f"place{number}") for number in range(count)]
    model.add_all_different(place)
    for number, later in enumerate(step_graph(program).after):
        for other in later:
            model.add(place[number] < place[other])
    peak = model.new_int_var(0, sum(aligned(buffer.nbytes) for buffer in program.buffers), "peak")
    intervals, sizes = [], []
    for number, buffer in enumerate(program.buffers):
        uses = [n for n, step in enumerate(program.steps) if number in program.buffers_of(step.reads + step.writes)]
        start, end = model.new_int_var(0, count, ""), model.new_int_var(0, count, "")
        model.add(start == 0) if number in program.input_buffers() else model.add_min_equality(
            start, [place[use] for use in uses]
        )
        if number in program.output_buffers():
            model.add(end == count)
        else:
            model.add_max_equality(end, [place[use] + 1 for use in uses])
        length = model.new_int_var(0, count, "")
        intervals.append(model.new_interval_var(start, length, end, f"alive{number}"))
        sizes.append(aligned(buffer.nbytes))
    model.add_cumulative(intervals, sizes, peak)
    model.minimize(peak)
    return solved(model)


@pytest.mark.parametrize("seed", range(5))
def test_no_placement_is_lower_than_that_of_the_planner(seed):
    found = loosened(seed, guillotine(seed, 25, 20, 60), 0.2)
    assert place_greedily(found).height == least_height(found)


@pytest.mark.parametrize("kind, seed", [(networks.cells, 0), (networks.cells, 1), (networks.wired, 0)])
def test_no_order_is_better_than_the_best(kind, seed):
    program = kind(40, seed)
    schedule = best_order(program)
    assert schedule.optimal
    assert schedule.peak == least_peak(program)

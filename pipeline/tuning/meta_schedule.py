"""Run MetaSchedule on one kernel, in this process.

TVM's own workers import for 10 to 100 s code that a CPU never uses (every tensor intrinsic of every GPU), and then build
for 0.1 s. Here nothing is imported, and passfit's own loop builds and measures the candidates: it ends on time.
"""

from __future__ import annotations

import importlib.util
import json
import time
from typing import Any

import tvm
from tvm.ir import IRModule
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule import _ffi_api
from tvm.s_tir.meta_schedule.logging import get_logger, get_logging_func
from tvm.s_tir.meta_schedule.search_strategy import MeasureCandidate
from tvm.s_tir.schedule import Schedule
from tvm.tirx import FloatImm, IntImm

from ..kernels.schedule.candidates import Schedule as Scheduled
from ..kernels.schedule.tuned import ScheduleRequest
from ..targets import Target
from ..tir.inlining import REFUSALS, attempt, root_blocks
from ..tir.row_window import takes_a_row
from .measure.harness import Harness

#: candidates per update of the cost model; population to choose them from
_BATCH, _POPULATION = 8, 64
_MAIN = "main"
#: loops of a tiled reduction, outermost first: spatial (S) and reduction (R)
_LEVELS = "SSRSRS"
Found = list[tuple[float, str, Scheduled]]


def cannot(request: ScheduleRequest) -> str:
    """Return why MetaSchedule cannot tune a kernel; empty if it can."""
    return "a row window: MetaSchedule would take its row number for a shape" if takes_a_row(request.kernel) else ""


def search_by_meta_schedule(
    request: ScheduleRequest, harness: Harness, target: Target, seconds: float, seed: int, trials: int, best: float
) -> tuple[Found, str]:
    """Search schedules by MetaSchedule within `seconds` and `trials`, and keep the allowed ones.

    A schedule is allowed if it can replace the rules' choice. Returns nanoseconds, spec and schedule of each, and a
    note: the cost model, or why nothing was found.
    """
    end = time.monotonic() + seconds
    module = IRModule({_MAIN: request.kernel.with_attr("global_symbol", _MAIN)})
    model, note = _cost_model(seed)
    found: Found = []
    try:
        context = _context(module, target, seed)
        database = ms.database.MemoryDatabase()
        workload = database.commit_workload(module)
        spaces = [each for space in context.generate_design_space() for each in _move_consumer_inside(space)]
        context.pre_tuning(trials, _BATCH, spaces, database, model)
        tried = 0
        while time.monotonic() < end and tried < trials:
            candidates = context.generate_measure_candidates()
            if not candidates:
                break
            results = []
            for candidate in candidates:
                one = None if time.monotonic() >= end else _measure(request, harness, candidate, best)
                if one is not None:
                    best = min(best, one[0])
                    found.append(one)
                run = None if one is None else [one[0] / 1e9]
                results.append(ms.runner.RunnerResult(run, None if run else "not allowed"))
                if run:
                    record = ms.database.TuningRecord(
                        candidate.sch.trace, workload, run, context.target, candidate.args_info
                    )
                    database.commit_tuning_record(record)
            tried += len(candidates)
            context.notify_runner_results(candidates, results)
            model.update(context, candidates, results)
    except REFUSALS as error:
        return found, f"MetaSchedule fails on this kernel ({type(error).__name__})"
    return found, note if found else f"{note}; none of its {tried} schedules is allowed here"


def _measure(
    request: ScheduleRequest, harness: Harness, candidate: MeasureCandidate, best: float
) -> tuple[float, str, Scheduled] | None:
    spec = json.dumps(_plain(candidate.sch.trace.as_json()), separators=(",", ":"))
    schedule = request.scheduled(spec)
    if schedule is None or not request.allows(schedule):
        return None
    return harness.cost(schedule, best), spec, schedule


def _cost_model(seed: int) -> tuple[ms.CostModel, str]:
    """Return the cost model and a note naming it: learned with xgboost installed, else random."""
    if importlib.util.find_spec("xgboost") is None:
        return ms.cost_model.RandomModel(
            seed=seed
        ), "cost model: random, as xgboost is missing: pip install passfit[tune]"
    return ms.cost_model.XGBModel(num_warmup_samples=2 * _BATCH, num_tuning_cores=1), "cost model: xgboost"


def _context(module: IRModule, target: Target, seed: int) -> ms.TuneContext:
    """Create a TuneContext without its constructor, which imports all tensor intrinsics."""
    device = tvm.target.Target({**target.tvm_config(), "num-cores": 1})
    context = ms.TuneContext.__new__(ms.TuneContext)
    context.__init_handle_by_constructor__(
        _ffi_api.TuneContext,
        module,
        device,
        _space(),
        _strategy(),
        _MAIN,
        1,
        seed + 1,
        get_logging_func(get_logger(__name__)),
    )
    _ffi_api.TuneContextInitialize(context)
    return context


def _strategy() -> ms.SearchStrategy:
    return ms.search_strategy.EvolutionarySearch(
        population_size=_POPULATION, init_measured_ratio=0.2, init_min_unmeasured=_BATCH, max_fail_count=3,
        genetic_num_iters=3, genetic_mutate_prob=0.85, genetic_max_fail_count=10, eps_greedy=0.1,
    )  # fmt: skip


def _space() -> ms.SpaceGenerator:
    """Return the design space of TVM's rules for CPUs, without threads."""
    rule = ms.schedule_rule
    rules = [
        rule.InlineConstantScalars(),
        rule.AutoInline(
            into_producer=False, into_consumer=True, inline_const_tensor=True, disallow_if_then_else=False,
            require_injective=False, require_ordered=False, disallow_op=None,
        ),
        rule.AddRFactor(max_jobs_per_core=16, max_innermost_factor=64),
        rule.MultiLevelTiling(
            structure=_LEVELS, tile_binds=None, max_innermost_factor=64, vector_load_lens=None, reuse_read=None,
            reuse_write=None,
        ),
        rule.ParallelizeVectorizeUnroll(
            max_jobs_per_core=-1, max_vectorize_extent=64, unroll_max_steps=[0, 16, 64, 512], unroll_explicit=True
        ),
        rule.RandomComputeLocation(),
    ]  # fmt: skip
    finish = ms.postproc
    mutate = ms.mutator
    return ms.space_generator.PostOrderApply(
        sch_rules=rules,
        postprocs=[
            finish.DisallowDynamicLoop(), finish.RewriteParallelVectorizeUnroll(), finish.RewriteReductionBlock()
        ],
        mutator_probs={mutate.MutateTileSize(): 0.9, mutate.MutateComputeLocation(): 0.05, mutate.MutateUnroll(): 0.05},
    )  # fmt: skip


def _move_consumer_inside(space: Schedule) -> list[Schedule]:
    """Move the consumer of a tiled reduction into its outer tiles; `space` alone if impossible.

    TVM's own rule does that for copies only, and else leaves an intermediate result as large as the kernel's. Wrong
    schedules are rejected when their results are compared.
    """
    for block in root_blocks(space):
        body = space.get(block)
        consumers = space.get_consumers(block)
        if "meta_schedule.tiling_structure" not in body.annotations or len(consumers) != 1:
            continue
        spatial = sum(int(axis.iter_type) == 0 for axis in body.iter_vars)
        loops = space.get_loops(block)
        found = []
        for last in (spatial, 2 * spatial):
            inside = space.copy()
            if attempt(inside.reverse_compute_at, consumers[0], loops[last - 1], preserve_unit_loops=True):
                found.append(inside)
        return found or [space]
    return [space]


def _plain(value: Any) -> object:
    """Convert a trace to JSON types."""
    if isinstance(value, (str, bool, float)) or value is None:
        return value
    if isinstance(value, (int, IntImm)):
        return int(value)
    if isinstance(value, FloatImm):
        return float(value.value)
    if hasattr(value, "items"):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value]

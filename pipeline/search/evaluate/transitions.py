"""Follow pass sequences from one graph: the state each leads to, and a module of it.

    "edge 1f3a… 3c07… fuse-operators" : ["9d52…", "3c07…"]        key and contents before; both after

Transitions do not depend on the target, so searches of a graph share them by its store. A module is made only where it is
asked for. Modules of one state with equal constants are equal but for names of variables, so any of them will do.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from tvm.ir import IRModule

from ...passes.base import ModulePass
from ...passes.sequence.catalogue import parse_spec
from ...passes.sequence.failures import PassFailure, failure_of
from ...support.result_store import ResultStore, store_of
from .state_key import StateKeys

Specs = tuple[str, ...]


class State(NamedTuple):
    """State of a graph: its key, and the digest of its constants."""

    key: int
    contents: str

    def __str__(self) -> str:
        return f"{self.key:x} {self.contents}"


class Transitions:
    """Hold the states that sequences lead to, and the modules made so far.

    `store` keeps results for the graph with its `names`, those of its ports; unless `keep`, for this process alone.
    """

    def __init__(self, graph: IRModule, *names: object, keep: bool = True):
        self._keys = StateKeys()
        start = State(*self._keys.key_and_contents(graph))
        subject = hashlib.sha256(repr((start, names)).encode()).hexdigest()[:32]
        self.store = store_of(subject) if keep else ResultStore(None)
        self._reached: dict[Specs, State] = {(): start}
        self._modules: dict[State, IRModule] = {start: graph}
        self._failures: dict[tuple[State, str], PassFailure] = {}

    def state(self, specs: Specs) -> State:
        """Return the state after the passes; exceptions of a pass propagate."""
        if specs not in self._reached:
            before, spec = self.state(specs[:-1]), specs[-1]
            if (before, spec) in self._failures:
                raise self._failures[before, spec]
            key, contents = self.store.get_or_make(f"edge {before} {spec}", lambda: self._apply_last(specs))
            self._reached[specs] = State(int(key, 16), contents)
        return self._reached[specs]

    def module(self, specs: Specs) -> IRModule:
        """Return a module of the state after the passes; exceptions of a pass propagate."""
        state = self.state(specs)
        if state not in self._modules:
            self._apply_last(specs)
        return self._modules[state]

    def _apply_last(self, specs: Specs) -> tuple[str, str]:
        """Apply the last pass, and keep the module if it is the first of its state; return that."""
        before, spec, module = self.state(specs[:-1]), specs[-1], self.module(specs[:-1])
        try:
            each = parse_spec(spec)
            assert isinstance(each, ModulePass)
            after = each.apply(module)
            state = before if after.same_as(module) else State(*self._keys.key_and_contents(after))
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            self._failures[before, spec] = failure
            raise failure from error
        self._modules.setdefault(state, after)
        return f"{state.key:x}", state.contents

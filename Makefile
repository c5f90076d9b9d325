# Everything runs inside .venv, which these commands make themselves. PYTHON=python3.12 chooses another interpreter.
PYTHON ?= python3
BIN := .venv/bin
BUILDER ?= docker
READY := .venv/.passfit-ready
LINTERS := .venv/.passfit-linters

# Python keeps what it compiles: without that, each stage and each test in a process of its own compiles TVM and MLflow
# again, which takes 7 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-fast quick changed nightly coverage lowest exporters docker lint ledger bench clean

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS='	' read -r name text; do \
	  printf '  make %-10s %s\n' "$$name" "$$text"; done

demo: $(READY) ## compile the demo models for all targets, show what fits
	@git rev-parse --git-dir >/dev/null 2>&1 || git init -q .  # DVC wants one, and an archive has none
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/dvc repro --keep-going || true  # the gate tells what failed; stages call `python`: the one of .venv
	@echo
	@$(BIN)/passfit gate; verdict=$$?; $(BIN)/passfit track; exit $$verdict

# One worker a core. A file stays with one worker, which makes the models and libraries of its fixtures once; files are
# handed out in the order of conftest.py, fast tests first, and not by their number of tests.
PARALLEL := -n logical --maxprocesses 8 --dist loadfile --no-loadscope-reorder

test: $(READY) ## the whole test suite on all cores, the fast tests first
	$(BIN)/python -m pytest $(PARALLEL)

test-fast: $(READY) ## the tests that need no TVM, in seconds
	$(BIN)/python -m pytest -m 'not tvm and not slow'

quick: $(LINTERS) ## one room in a minute, its lint and its tests: make quick ROOM=kernels/rules
	@$(BIN)/python -m tests.quick "$(ROOM)"

changed: $(READY) ## the tests that a change may break, in minutes: make changed REV=main; by default what is not committed
	$(BIN)/python -m pytest $(PARALLEL) --changed "$(or $(REV),HEAD)"

nightly: $(READY) ## new random examples, five to ten times as many, the long random searches, the fuzzer
	$(BIN)/python -m pytest $(PARALLEL) --hypothesis-profile nightly -m 'hypothesis or nightly'
	$(BIN)/python -m tests.fuzz operators --count 20000 --seed $$(date +%j0000) --keep out/fuzz
	$(BIN)/python -m tests.fuzz networks --count 3000 --seed $$(date +%j0000) --keep out/fuzz
	$(BIN)/python benchmarks/bad_input.py --models 2000 --files 100 --seed $$(date +%j0000)

# TESTS=tests/memory takes a part, here and in `lowest`; fail_under of pyproject.toml is of the whole suite.
coverage: $(READY) ## the whole test suite, measured: the lines it runs, the modules it leaves out; out/coverage
	rm -rf out/coverage && mkdir -p out/coverage
	$(BIN)/python -m coverage run -m pytest $(PARALLEL) $(TESTS); \
	  tests=$$?; $(BIN)/python -m tests.coverage_report; covered=$$?; exit $$((tests ? tests : covered))

# uv resolves to the lowest versions, which pip cannot. A bound that fails is raised in pyproject.toml. From Python 3.11 on:
# ONNX Runtime 1.23, the last for 3.10, ends the process of some tests (an Einsum of empty tensors, an LSTM of two directions).
OLDEST ?= $(shell for each in python3.11 python3.12 python3.13; do $$each -c '' 2>/dev/null && echo $$each && break; done)
LOWEST := .venv-lowest/bin
lowest: ## the whole test suite with the lowest versions that pyproject.toml allows, on the oldest Python here
	$(or $(OLDEST),$(PYTHON)) -m venv --clear .venv-lowest
	$(LOWEST)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.8,<1'
	$(LOWEST)/uv pip install --quiet --python $(LOWEST)/python --resolution lowest-direct -e '.[test]'
	$(LOWEST)/python -m pytest $(PARALLEL) $(TESTS)

# The frameworks take gigabytes, and other versions of what passfit needs: an environment of their own.
exporters: $(READY) ## docs/exporting.md as it is written, with PyTorch, Keras and TensorFlow
	$(PYTHON) -m venv .venv-exporters
	.venv-exporters/bin/python -m pip install --quiet --disable-pip-version-check torch torchvision keras tensorflow-cpu tf2onnx onnxscript scikit-learn skl2onnx
	EXPORTERS="$(CURDIR)/.venv-exporters/bin/python" $(BIN)/python -m pytest tests/e2e/test_exporting.py tests/e2e/test_exported_networks.py

docker: ## the image of the Dockerfile, and a look that it starts; BUILDER=podman builds it, too
	$(BUILDER) build --tag passfit .
	$(BUILDER) run --rm passfit targets

lint: $(LINTERS) ## the import contract, ruff, its formatter, and mypy
	$(BIN)/python -m ruff check pipeline stages tests benchmarks
	$(BIN)/python -m ruff format --check pipeline stages tests benchmarks
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -q tests/test_layout.py

ledger: ## code lines by room, now and at a base: make ledger BASE=main
	@$(PYTHON) -m tests.ledger "$(or $(BASE),HEAD)"

# Rows are kept by commit: an interrupted run goes on. Each script measures a part with --model, --op or --only.
bench: $(READY) ## the benchmarks again, hours on two quiet cores; benchmarks/results
	$(BIN)/python benchmarks/main_tables.py
	$(BIN)/python benchmarks/roofline.py
	$(BIN)/python benchmarks/form_tables.py
	$(BIN)/python benchmarks/mlperf_tiny.py
	$(BIN)/python benchmarks/quantise.py
	$(BIN)/python benchmarks/boards.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/literature.py
	$(BIN)/python benchmarks/sanitizers.py
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/kernel_grid.py
	$(BIN)/python benchmarks/code_size.py
	$(BIN)/python benchmarks/tool_memory.py
	$(BIN)/python benchmarks/by_architecture.py
	$(BIN)/python benchmarks/rebench.py
	$(BIN)/python benchmarks/backend_tests.py
	$(BIN)/python benchmarks/fuzz.py
	$(BIN)/python benchmarks/bad_input.py
	$(BIN)/python benchmarks/file_matrix.py
	$(BIN)/python benchmarks/unsplit.py
	$(BIN)/python benchmarks/knowledge.py
	$(BIN)/python benchmarks/variants.py
	$(BIN)/python benchmarks/ablation.py
	$(BIN)/python benchmarks/results_page.py

clean: ## remove results and caches, keep .venv
	rm -rf out .dvc/cache .dvc/tmp build dist .pytest_cache .hypothesis .ruff_cache .mypy_cache

# Made again when the dependencies change. The pip that older Pythons bring takes twice as long as this one: it compares
# every file of the index with every tag of the platform. --no-compile: Python compiles what is imported, which is far less.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "passfit needs Python >= 3.10, $(PYTHON) is older: run make PYTHON=python3.12 (or another)." >&2; exit 2; }
	@$(PYTHON) -m venv .venv \
	  || { echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian: python3-venv)." >&2; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --upgrade 'pip>=25,<26'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[test]'
	@touch $@

$(LINTERS): pyproject.toml | $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[lint]'
	@touch $@

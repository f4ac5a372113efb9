# Everything runs from .venv, made on first use and again when pyproject.toml changes. Its bytecode
# is compiled on import: most modules of the libraries are never imported.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
MODEL ?= models/linear_autoencoder.slo
# Set, the documentation has the gallery and what its blocks print; empty, it builds in seconds.
export SLOMODEL_GALLERY ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo test check bench golden docs matrix vsix

help:
	@echo "make demo    solve $(MODEL) on real data; writes out/demo.png"
	@echo "make test    every test that is not marked slow or gpu"
	@echo "make check   format, lint, types, layers; then the longest files and functions"
	@echo "make docs    the documentation as a site, in out/site; warnings are errors"
	@echo "make matrix  every supported Python with the oldest and newest libraries; docs/supported.md"
	@echo "make vsix    the extension for VS Code, out/slomodel.vsix"
	@echo "make bench   time the generated kernels against hand-written NumPy"
	@echo "make golden  rewrite the expected texts in tests/golden, then read git diff"

$(READY): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "slomodel needs Python 3.11 or newer: make PYTHON=python3.x ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[dev,gpucheck]'
	@touch $@

demo: $(READY)
	@mkdir -p out
	$(BIN)/slomodel solve $(MODEL) --method norm-armijo --direction lbfgs --max-time 20 \
	  --plot out/demo.png

# One BLAS and numexpr thread a worker: the workers already fill the cores. Each worker of a fresh
# checkout would take ten seconds to rewrite the assertions of all tests; tests that fail run again
# with them rewritten, which shows the operands.
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: export NUMEXPR_NUM_THREADS = 1
test: $(READY)
	$(BIN)/python -m pytest -q -n auto --maxprocesses 4 --assert=plain \
	  || { $(BIN)/python -m pytest -q -n 0 --last-failed --last-failed-no-failures none; exit 1; }

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(if $(TESTED),,$(BIN)/python -m pytest -q tests/test_repository.py tests/test_layers.py)
	$(BIN)/python tests/sizes.py

bench: $(READY)
	$(BIN)/python benchmarks/evaluate.py

docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

matrix: $(READY)
	$(BIN)/python tests/matrix.py --write

vsix: $(READY)
	$(BIN)/python editors/vscode/pack.py

golden: $(READY)
	$(BIN)/python -m pytest -q --golden

# memoryd: the two commands a newcomer needs are `make run` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKSPACE ?= examples/workspace
ifeq ($(WORKSPACE),examples/workspace)
QUERY ?= how do we ship a change safely
endif

# llama-cpp-python is compiled once (about three minutes on two cores) and then kept in pip's wheel cache.
# Only libllama and ggml are built: without multimodal code, and without llama.cpp's `common` library.
export CMAKE_ARGS ?= -DLLAVA_BUILD=OFF -DCMAKE_PROJECT_llama.cpp_INCLUDE=$(CURDIR)/tools/llama-only.cmake
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc 2>/dev/null || echo 2)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: all run test faults check format soak storm bench fuzz quality lock clean

all: $(VENV)/installed

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

# The package itself, as a user gets it.
$(VENV)/installed: pyproject.toml requirements.lock | $(VENV)/bin/python
	@echo "Installing memoryd and its dependencies (llama.cpp is compiled the first time: a few minutes)"
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --editable .
	@touch $@

# What the tests and checks need besides.
$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --group dev
	@touch $@

run: $(VENV)/installed
	$(BIN)/memoryd run --workspace $(WORKSPACE) --sample $(if $(QUERY),"$(QUERY)")

test: $(VENV)/installed-dev
ifeq ($(ARGS),)
	$(BIN)/python -m pytest --ignore=tests/faults
	$(MAKE) --no-print-directory faults
else
	$(BIN)/python -m pytest $(ARGS)
endif

# A daemon that fails waits more than it works, so there are two of these at a time.
faults: $(VENV)/installed-dev
	$(BIN)/python -m pytest --numprocesses=2 --dist=worksteal tests/faults

check: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Ten thousand single-file changes, and what is left of them on disk.
storm: $(VENV)/installed-dev
	STORM_CHANGES=$(or $(CHANGES),10000) $(BIN)/python -m pytest -s tests/integration/test_storm.py

# What memoryd costs beside its own limits (docs/performance.md); ARGS="--keep docs/bench" keeps it as the baseline.
bench: $(VENV)/installed-dev
	$(BIN)/python tools/bench.py $(ARGS)

# How cost grows, up to a million chunks: half an hour to make them the first time, and 14 GB.
.PHONY: bench-growth bench-check
bench-growth: $(VENV)/installed-dev
	$(BIN)/python tools/bench.py --growth-only --growth-chunks 1000,10000,100000,1000000 $(ARGS)

# Fails if a ratio is more than 15 % worse than in docs/bench/baseline.json.
bench-check: $(VENV)/installed-dev
	$(BIN)/python tools/bench_check.py $(ARGS)

# What the socket makes of bytes, for FUZZ_SECONDS; what is new and worth keeping goes to tests/fuzz/found.
FUZZ_SECONDS ?= 300
fuzz: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --constraint requirements.lock --group fuzz
	mkdir -p tests/fuzz/found
	$(BIN)/python tests/fuzz/run.py -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 \
		-dict=tests/fuzz/words.dict tests/fuzz/found tests/fuzz/seeds

# Of what was found, what reaches something that no seed does is kept as one.
.PHONY: fuzz-keep
fuzz-keep: $(VENV)/installed-dev
	PATH="$(CURDIR)/$(BIN):$$PATH" tests/fuzz/run.py -merge=1 -max_len=4096 tests/fuzz/seeds tests/fuzz/found

# The search on public benchmarks, written to docs/quality.md. The first run embeds them: about half an hour.
quality: $(VENV)/installed
	$(BIN)/python tools/quality.py $(ARGS)

# The manual page, from the command line; a test compares the two.
.PHONY: man
man: $(VENV)/installed
	$(BIN)/python -m memoryd.daemon.manual > docs/memoryd.1

# The long form of tests/faults: kills, edits and searches, with a summary line at the end (docs/reliability.md).
MINUTES ?= 30
soak: $(VENV)/installed-dev
	$(BIN)/python tools/soak.py --minutes $(MINUTES) $(ARGS)

lock: $(VENV)/installed-dev
	$(BIN)/python -m pip install --quiet --group fuzz
	$(BIN)/python -m pip freeze --exclude-editable > requirements.lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist

# The habits. scripts/setup makes .venv, whose python3 comes first here; `make SETUP= ...` takes the machine as it is.
PYTHON ?= python3
SETUP ?= setup
TESTS ?= tests
TARGETS ?= cpu sim:80 sim:90
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYTHONPATH := python

ASAN_RUNTIME = $(shell gcc -print-file-name=libasan.so) $(shell gcc -print-file-name=libstdc++.so.6)

.NOTPARALLEL:
.PHONY: dev setup demo test test-all bench notebooks replay wheel lint format asan clean

dev:
	@TRITON_BUILD=dev $(PYTHON) setup.py -q build_ext --inplace

setup:
	@scripts/setup

demo: $(SETUP) dev
	$(PYTHON) scripts/demo

# The simulator's share is a sample; `make test-all` runs everything on every target.
SIM_SAMPLE = tests/language/test_memory.py tests/language/test_reductions.py tests/language/test_atomics.py
test: $(SETUP) dev
	$(if $(TESTS),,$(PYTHON) -m pytest -q -m "not slow" --target sim:90 $(SIM_SAMPLE))
	$(PYTHON) -m pytest -m "not slow" $(TESTS)

test-all: $(SETUP) dev
	for target in $(TARGETS); do $(PYTHON) -m pytest --target $$target $(TESTS) || exit; done

# What users run is measured: the release build, in place until the next `make dev`. BENCH_JSON=FOLDER keeps the rows.
bench: $(SETUP)
	@TRITON_BUILD=release $(PYTHON) setup.py -q build_ext --inplace
	for name in cpu launch compile; do \
	$(PYTHON) benchmarks/$$name.py $(if $(BENCH_JSON),--json $(BENCH_JSON)/$$name.json) || exit; done

notebooks:
	@$(PYTHON) scripts/notebooks

# What a change does to tile IR, LLVM IR and assembly of the tutorials' kernels: make replay OLD=commit [NEW=commit]
replay: $(SETUP)
	@scripts/replay $(or $(OLD),HEAD) $(NEW)

# setuptools packs whatever an earlier build left in build/lib.*, so that goes first.
wheel: $(SETUP)
	rm -rf build/lib.*
	$(PYTHON) -m pip wheel -q --no-deps -w dist .

# The sanitizers' package lies beside the sources' one and comes first on the path.
asan: $(SETUP)
	@TRITON_BUILD=asan $(PYTHON) setup.py -q build --build-lib build/asan/lib
	PYTHONPATH=build/asan/lib PYTHONMALLOC=malloc LD_PRELOAD="$(ASAN_RUNTIME)" ASAN_OPTIONS=detect_leaks=0 \
	UBSAN_OPTIONS=print_stacktrace=1 $(PYTHON) -m pytest -m "not slow" $(TESTS)

# Every check runs, even after one has failed.
CHECKS = scripts/check_layout "ruff check -q" "ruff format -q --check" scripts/check_layers scripts/check_calls \
	scripts/check_globals
lint: dev
	@$(if $(SETUP),scripts/setup lint)
	@bad=0; for check in $(CHECKS); do $$check || { echo "lint: failed: $$check"; bad=1; }; done; exit $$bad
	@scripts/size

format:
	@$(if $(SETUP),scripts/setup lint)
	clang-format -i $(shell find csrc -name '*.[ch]')
	ruff check -q --fix
	ruff format -q
	scripts/language_reference

clean:
	rm -rf build dist python/*.egg-info python/triton/_C.*.so

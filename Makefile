# The habits. scripts/setup makes .venv, whose python3 comes first here; `make SETUP= ...` takes the machine as it is.
PYTHON ?= python3
SETUP ?= setup
TESTS ?= tests
SIMULATORS ?= sim:80 sim:90
# Processes that `make test` runs its tests in (pytest-xdist's -n): none, one after the other without pytest-xdist, if empty.
WORKERS ?= auto
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYTHONPATH := python

ASAN_RUNTIME = $(shell gcc -print-file-name=libasan.so) $(shell gcc -print-file-name=libstdc++.so.6)

.NOTPARALLEL:
.PHONY: dev setup demo test test-all bench notebooks docs replay wheel lint format asan clean

dev:
	@TRITON_BUILD=dev $(PYTHON) setup.py -q build_ext --inplace

setup:
	@scripts/setup

demo: $(SETUP) dev
	$(PYTHON) scripts/demo

# Where there is a ptxas, it takes one kernel in ASSEMBLE. The simulator of sm_90 runs the whole language, that of sm_80 a
# sample; `make test-all` runs everything on every target, and gives every kernel to ptxas.
TARGET_TESTS = $(if $(filter tests,$(TESTS)),$(addprefix tests/,language frontend runtime errors fuzz show),$(TESTS))
QUICK = $(PYTHON) -m pytest -m "not slow" $(if $(WORKERS),-n $(WORKERS) --maxprocesses 8 --dist worksteal)
test: $(SETUP) dev
	$(QUICK) --assemble 20 $(TESTS)
	$(if $(filter tests,$(TESTS)),$(QUICK) -q --target sim:90 tests/language)
	$(if $(filter tests,$(TESTS)),$(QUICK) -q --target sim:80 --padding --sample 8 tests/language)
	$(if $(filter tests,$(TESTS)),$(QUICK) -q --target interpret --sample 4 tests/language)

test-all: $(SETUP) dev
	$(PYTHON) -m pytest --assemble 1 $(TESTS)
	for target in $(SIMULATORS); do $(PYTHON) -m pytest --padding --target $$target $(TARGET_TESTS) || exit; done
	$(PYTHON) -m pytest --target interpret $(filter tests/language,$(TARGET_TESTS))

# What users run is measured: the release build, in place until the next `make dev`. BENCH_JSON=FOLDER keeps the rows.
# Where there is a GPU, it is measured beside the Triton that is installed, or that PYTHONPATH leads to.
bench: $(SETUP)
	@TRITON_BUILD=release $(PYTHON) setup.py -q build_ext --inplace
	for name in cpu launch compile $(if $(wildcard /dev/nvidiactl),gpu); do \
	$(PYTHON) benchmarks/$$name.py $(if $(BENCH_JSON),--json $(BENCH_JSON)/$$name.json) || exit; done

notebooks:
	@$(PYTHON) scripts/notebooks

# The site with search, into build/docs/html. It takes no network, but scripts/setup does, for Sphinx.
docs: $(SETUP) dev
	@$(if $(SETUP),scripts/setup docs)
	@$(PYTHON) scripts/site

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

# make demo and make test set everything up by themselves. PYTHON picks the interpreter, ARGS is handed to pytest.
PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.longtake-is-set-up
# two processes with one thread each: what two cores can do
TEST := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: setup demo test check bench docs golden system
.DEFAULT_GOAL := demo

setup: $(SETUP)

# a marker file, so that a second run costs nothing; pip picks the CPU or the CUDA build of torch by itself
$(SETUP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(0 if sys.version_info >= (3, 11) else \
	    f"longtake needs Python 3.11 or newer, {sys.executable} is {v}; try make setup PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "longtake: installing into .venv (the first time takes minutes, most of it torch)"
	@$(BIN)/python -m pip install $(if $(CI),-qq) --disable-pip-version-check -c constraints.txt -e '.[train,eval,harness,dev]'
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps -c constraints.txt lmms-eval
	@touch $(SETUP)

# ffmpeg and Java are for the tests and for METEOR; where they are missing those parts are skipped and say so
system:
	@bash scripts/system_packages.sh

demo: setup
	@mkdir -p out
	$(BIN)/longtake caption assets/demo.mp4 --model toybox-sts -o out/demo.vtt -o out/demo.json --timeline out/demo.png
	@echo "longtake: wrote out/demo.vtt, out/demo.json and out/demo.png" >&2

test: setup system
	$(TEST) $(ARGS)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/python -m pytest -q tests/test_architecture.py

bench: setup
	@mkdir -p out
	OMP_NUM_THREADS=1 $(BIN)/longtake bench scan --json | tee out/bench_scan.json
	$(BIN)/longtake bench stream --minutes 60 --json | tee out/bench_stream.json
	$(BIN)/longtake bench kv --json | tee out/bench_kv.json
	$(BIN)/longtake bench decode --json | tee out/bench_decode.json
	$(BIN)/longtake bench flops --json | tee out/bench_flops.json
	$(BIN)/longtake bench sts --json | tee out/bench_sts.json

# docs/cli.md and tests/golden are made from the commands, docs/vlm_support.md from the families, docs/flops*.md by counting;
# tests say when they drift
docs golden: setup
	$(BIN)/python scripts/make_golden.py
	$(BIN)/python scripts/make_vlm_support.py
	$(BIN)/longtake bench flops > docs/flops.md
	$(BIN)/longtake bench sts > docs/flops_sts.md

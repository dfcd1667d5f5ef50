# Every command a person or CI needs. Works on a bare machine with python3 and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready

# HistGradientBoosting on busy cores is 100 times slower with OpenMP left alone.
export OMP_NUM_THREADS ?= 1

# Words that mean something in this project alone; `make check` refuses them.
PRIVATE_WORDS := promise[sd]?|promising|cautious|bold(er|est)?|purse|wagers?|corridor|chapters?|stakes?|standings?|few_kinds|brought_here|rankings?|caught|turned|one_way|tall(y|ies)|bench

.PHONY: help venv map demo test test-wheel test-floor test-prereleases test-torch test-libraries test-slow test-browser check check-pyright format bench bench-full peers libraries schemas docs paper reproduce release clean

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

venv: $(STAMP)  ## .venv with everything the other targets need (idempotent)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(STAMP)

map:  ## every module, with what it is for
	@find src/dpassay -name '*.py' | sort | while read -r file; do \
	  printf '%-32s %s\n' "$${file#src/dpassay/}" "$$(sed -n '1s/"""//gp' "$$file")"; done

demo: venv  ## the tour
	$(BIN)/dpassay demo

test: venv  ## unit, statistical and end-to-end tests (under 8 minutes on 2 cores)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow and not browser and not wheel'

test-wheel: venv  ## the wheel, installed where nothing else is
	$(BIN)/python -m pytest -m wheel tests/e2e

test-floor:  ## the unit tests with the lowest versions that pyproject.toml declares
	test -x .venv-floor/bin/python || $(PYTHON) -m venv .venv-floor
	$(PYTHON) tests/floor.py > .venv-floor/pins.txt
	.venv-floor/bin/python -m pip install --quiet --upgrade pip
	.venv-floor/bin/python -m pip install --quiet --editable . -r .venv-floor/pins.txt \
	  array-api-strict dp-accounting hypothesis pandas polars pytest pytest-xdist
	.venv-floor/bin/python -m pytest -n 2 --dist worksteal -m 'not slow and not browser' tests/unit tests/e2e/test_cli.py

test-prereleases:  ## the unit tests with pre-releases of all dependencies; it may fail, and says what is to come
	test -x .venv-prereleases/bin/python || $(PYTHON) -m venv .venv-prereleases
	.venv-prereleases/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --pre --editable '.[dev]'
	-.venv-prereleases/bin/python -m pytest -n 2 --dist worksteal -m 'not slow and not browser' tests/unit

test-torch:  ## DP-SGD of examples/ against autograd and Opacus, and arrays of PyTorch; an environment of its own
	test -x .venv-torch/bin/python || $(PYTHON) -m venv .venv-torch
	.venv-torch/bin/python -m pip install --quiet --upgrade pip
	.venv-torch/bin/python -m pip install --quiet --editable '.[torch,dask]' dp-accounting opacus hypothesis pytest array-api-strict
	.venv-torch/bin/python -m pytest examples tests/unit/test_device_arrays.py

test-slow: venv  ## the long statistical runs, and 30,000 hostile inputs (tests/fuzz)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

test-browser: venv  ## the report in a real browser (needs Chromium)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || command -v google-chrome >/dev/null \
	  || { echo 'make test-browser needs Chromium; on Debian: apt-get install chromium' >&2; exit 1; }
	$(BIN)/python -m pytest -m browser tests/browser

check: venv  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	cd tests/sample_project && ../../$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	@! grep -rniE '(^|[^a-z])($(PRIVATE_WORDS))([^a-z]|$$)' src/dpassay --include='*.py' \
	  || { echo 'the field has other words for these: see "Words" in CONTRIBUTING.md' >&2; exit 1; }

check-pyright:  ## the sample project with pyright, in an environment of its own (its first run fetches the npm package)
	test -x .venv-pyright/bin/python || $(PYTHON) -m venv .venv-pyright
	.venv-pyright/bin/python -m pip install --quiet . pyright
	cd tests/sample_project && ../../.venv-pyright/bin/pyright --pythonpath ../../.venv-pyright/bin/python

format: venv  ## let ruff format and fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: venv  ## speed and quality side by side, into docs/benchmarks.md (under 10 minutes)
	$(BIN)/python -m benchmarks

bench-full: venv  ## the same also with n = 10⁷ and 10⁸, and 1000 runs
	$(BIN)/python -m benchmarks --full

peers:  ## other auditors, in an environment of their own, for the benchmarks
	$(PYTHON) -m venv .peers
	.peers/bin/python -m pip install --quiet jax-privacy privacy-estimates

libraries:  ## released libraries under audit, each in an environment of its own (WHAT=opendp, all; ONLY=REGEX)
	$(PYTHON) -m libraries.environments $(WHAT) $(if $(ONLY),--only '$(ONLY)') $(ARGS)

test-libraries:  ## a few cases of OpenDP, in its environment (under 3 minutes)
	$(PYTHON) -m libraries.environments opendp --make
	.libraries/opendp/bin/python -m pip install --quiet hypothesis pytest
	.libraries/opendp/bin/python -m pytest tests/libraries

schemas: venv  ## the JSON Schemas of results, from the types of the records
	$(BIN)/python -m tools.schemas

docs: venv  ## the documentation: spelling, links and warnings are errors (LINKS=1: also links to other sites)
	$(BIN)/codespell README.md CONTRIBUTING.md CHANGELOG.md docs
	$(if $(LINKS),$(BIN)/python -m sphinx -q -b linkcheck docs docs/_build/links)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo 'docs/_build/html/index.html'

paper: venv  ## the technical report as a PDF, its tables read from the results in the repository
	mkdir -p docs/_build
	$(BIN)/python -c "import typst; typst.compile('docs/paper/report.typ', output='docs/_build/report.pdf', root='.', ignore_system_fonts=True)"
	@echo 'docs/_build/report.pdf'

reproduce: venv  ## the papers' figures and tables, into papers/mine (WHAT=pure/fig4, pure, all; RUNS=1000; SEED=1; WRITE=1)
	RUNS='$(RUNS)' SEED='$(SEED)' WRITE='$(WRITE)' $(BIN)/python -m papers $(WHAT)

release: venv  ## everything a release is checked for, from a clean clone, into dist/ (PUBLISH=1 refuses placeholders)
	$(BIN)/python -m tools.release $(if $(PUBLISH),--publish) $(ARGS)

clean:  ## remove what the other targets made
	rm -rf $(VENV) .venv-floor .venv-torch .venv-pyright .venv-prereleases .libraries build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis docs/_build

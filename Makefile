# Everything runs in .venv, which is made from a bare Python 3.11 or later. `make help` lists the targets.
# Paths are relative throughout, so that the project may lie in a folder whose name has spaces.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
PY := $(VENV)/bin/python
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
PYTEST := $(ONE_THREAD) $(PY) -m pytest -n $(WORKERS) --dist worksteal
INSTALL := -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test check web-check web chromium bench recovery docs lock lowest clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18

demo: $(VENV)/.ready-run  ## render a film whose law is known, analyse it, and say where the report is
	$(VENV)/bin/video2pde synth demo --out demo
	$(VENV)/bin/video2pde run demo/film.mp4 --out demo/run
	@$(PY) tools/compare_truth.py demo/run/result.json demo/truth.json

test: check web-check chromium $(VENV)/.ready-test  ## check, then run all tests but the long recoveries
	$(PYTEST)

check: $(VENV)/.ready-check  ## style, formatting and types
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(PY) -m mypy

recovery: $(VENV)/.ready-test  ## recover known laws from rendered films (long); writes docs/scoreboard.md
	$(PYTEST) -m recovery
	$(ONE_THREAD) $(PY) tools/scoreboard.py --workers $(WORKERS)

bench: $(VENV)/.ready-bench  ## measure speed and memory; writes benchmarks/results
	$(PY) -m benchmarks

docs: $(VENV)/.ready-docs  ## build the documentation into site/
	$(PY) -m sphinx -W --keep-going -q -b html docs site
	@echo "The documentation is site/index.html."

lock: $(PY)  ## write constraints.txt and constraints-lowest.txt anew from pyproject.toml
	$(PY) tools/lock.py

lowest: .venv-lowest/.ready  ## run the quick tests with the oldest versions that pyproject.toml allows
	$(ONE_THREAD) .venv-lowest/bin/python -m pytest -n $(WORKERS) -W default tests/unit tests/numerics

clean:  ## remove environments and everything that was made
	rm -rf .venv .venv-lowest demo site build jupyter_execute .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf web/node_modules web/build-test
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- environments -----------------------------------------------------------------------------------------------

# The first Python that is new enough: the locked versions are for 3.11 to 3.14, so those come first.
FIND_PYTHON = for newest in 15 999; do \
	  for candidate in "$(PYTHON)" python3 python3.14 python3.13 python3.12 python3.11; do \
	    if "$$candidate" -c "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, $$newest))" 2>/dev/null; then \
	      found="$$candidate"; break 2; \
	    fi; \
	  done; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "video2pde needs Python 3.11 or later, and '$(PYTHON)' is not; say which one to use: make PYTHON=/path/to/python3.12" >&2; \
	  exit 1; \
	fi

define make_environment
@$(FIND_PYTHON); echo "making $(1) with $$found"; "$$found" -m venv $(1) || { \
	  echo "$$found cannot make a virtual environment; on Debian and Ubuntu, install python3-venv" >&2; \
	  rm -rf $(1); exit 1; }
endef

$(PY):
	$(call make_environment,$(VENV))

$(VENV)/.ready-run: EXTRAS =
$(VENV)/.ready-test: EXTRAS = [test]
$(VENV)/.ready-check: EXTRAS = [check]
$(VENV)/.ready-docs: EXTRAS = [docs]
$(VENV)/.ready-bench: EXTRAS = [bench,netcdf]
$(VENV)/.ready-%: pyproject.toml constraints.txt | $(PY)
	@echo "installing video2pde$(EXTRAS) into $(VENV)"
	@$(PY) $(INSTALL) -c constraints.txt -e '.$(EXTRAS)'
	@touch $@

.venv-lowest/bin/python:
	$(call make_environment,.venv-lowest)

.venv-lowest/.ready: pyproject.toml constraints-lowest.txt | .venv-lowest/bin/python
	.venv-lowest/bin/python $(INSTALL) -c constraints-lowest.txt -e '.[test]'
	@touch $@

# --- the report's page, and a browser to test it ------------------------------------------------------------------

NODE_NEW_ENOUGH = node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null

web/node_modules/.ready: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

web-check:
	@if $(NODE_NEW_ENOUGH); then \
	  $(MAKE) --no-print-directory web/node_modules/.ready && cd web && npm run --silent check && npm run --silent test; \
	else \
	  echo "web checks skipped: they need node 20.19 or later"; \
	fi

web: web/node_modules/.ready  ## build the report's page and the studio's anew (needs node)
	cd web && npm run build

chromium:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing Chromium for the browser tests"; \
	  { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } >/dev/null \
	    || echo "Chromium could not be installed: the browser tests will be skipped"; \
	else \
	  echo "no Chromium found: the browser tests will be skipped"; \
	fi

# Two commands for a newcomer: `make demo` and `make test`. Both create .venv by themselves: the one installs the core
# alone, without torch, the other every extra. `make trec` makes an environment beside it for trec_eval, `make real-model`
# one for llama.cpp's server, `make collections` one for the libraries that read the test collections.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
INSTALLED := $(VENV)/.installed
TREC := .venv-trec
SERVER := .venv-model
READERS := .venv-collections
MODEL := normal
# A test file is one worker's, so that what its tests share is built once, and the files come in the order of
# tests/conftest.py, the longest first; each worker takes some 2 GB.
WORKERS := --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

unexport PYTHONDONTWRITEBYTECODE  # tests start many programs: each would compile the package anew

.PHONY: demo test slow attack fuzz lint docs pictures measure reproduce reproductions notebooks trec real-model collections clean

$(CORE): pyproject.toml
	$(PYTHON) -c 'import sys; assert (3, 11) <= sys.version_info[:2] <= (3, 13), f"Python 3.11 to 3.13 is needed, this is {sys.version.split()[0]}: make PYTHON=python3.12 …"'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(INSTALLED): $(CORE)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(CORE)  ## build the sample Library, ask three questions
	@test -d demo_output/sample || echo "Sixty decisions are indexed: some 30 s; the first time the encoder is converted, once: some 30 s more."
	$(BIN)/python demo.py

test: $(INSTALLED)  ## the tests, but for the slow ones
	$(BIN)/python -m pytest $(WORKERS)

slow: $(INSTALLED)  ## kills, notebooks, separate environments, whole campaigns
	$(BIN)/python -m pytest -m slow $(WORKERS)

attack: $(INSTALLED)  ## programs, servers, files and decisions that mean harm, some 45 minutes; ATTACK="--seconds 60" for some
	PYTHONPATH=tests $(BIN)/python -m attacks.campaign $(ATTACK)

fuzz: $(INSTALLED)  ## what strangers' bytes come in by, for an hour; FUZZ="--seconds 60 --seed 7" for less, or otherwise
	PYTHONPATH=tests $(BIN)/python -W ignore -m attacks.fuzz $(FUZZ)

lint: docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

docs: $(INSTALLED)  ## the documentation as a site, build/docs/site; a broken link fails
	$(BIN)/python docs/make_site.py

pictures: $(INSTALLED)  ## README's pictures anew, by Chromium
	$(BIN)/python docs/take_pictures.py

measure: $(INSTALLED)  ## size and shape of the code, seconds of --help
	$(BIN)/python benchmarks/measure.py

reproduce: $(INSTALLED)  ## published figures anew, compared with those expected; ROWS="'sample-*'" for some
	$(BIN)/legal-rag reproduce $(ROWS)

reproductions: $(INSTALLED)  ## docs/reproductions.md anew, of benchmarks/reproductions.toml
	$(BIN)/python docs/write_reproductions.py

notebooks: $(INSTALLED) trec  ## write each notebook anew from its script, with the outputs of a run
	PYTHONPATH=tests $(BIN)/python -m support.notebooks demo.py notebooks/*.py

$(TREC)/.installed: Makefile | $(CORE)
	$(BIN)/python -c 'import sys; from legal_rag.evaluation import install_trec_eval; sys.exit(install_trec_eval("$(TREC)"))'
	touch $@

trec: $(TREC)/.installed  ## trec_eval, by pyserini and a Java runtime, for --pyserini
	$(TREC)/bin/python -c 'import pyserini.eval.trec_eval'

# benchmarks/real_model.py reads the server's log: hence one version.
$(SERVER)/.installed: Makefile
	test -x $(SERVER)/bin/python || $(PYTHON) -m venv $(SERVER)
	$(SERVER)/bin/python -m pip install --quiet --disable-pip-version-check 'xllamacpp==2026.10.11549'
	touch $@

real-model: $(INSTALLED) $(SERVER)/.installed  ## a small language model on this machine, half an hour; MODEL=small for a smaller one
	$(BIN)/python benchmarks/real_model.py --model $(MODEL) $(REAL_MODEL)

$(READERS)/.installed: Makefile
	test -x $(READERS)/bin/python || $(PYTHON) -m venv $(READERS)
	$(READERS)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(READERS)/bin/python -m pip install --quiet --disable-pip-version-check 'beir==2.2.*' 'datasets==5.2.*' 'ir_datasets==0.6.*' 'ir_measures>=0.4.3' 'mteb==2.26.*'
	touch $@

collections: $(INSTALLED) $(READERS)/.installed  ## make the test collections, read them by four libraries; RUNS=folder compares figures
	$(BIN)/python collections/make_collection.py --check $(RUNS)

clean:
	rm -rf $(VENV) $(TREC) $(SERVER) $(READERS) demo_output

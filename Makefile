# nodeprint. `make` alone prints what there is.
SHELL := /bin/sh
CONFIG ?= config/config.yaml
export PATH := $(CURDIR)/.venv/bin:$(PATH)

LINT = python workflow shell ansible kernels
.PHONY: help demo run cluster report setup kernels able-to-build able-to-run able-to-test lint $(LINT:%=lint-%) format test test-pure test-machine test-emulated test-recipes test-all fuzz test-fresh test-offline test-quick mutants bench wheel collection bundle docs pictures clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16
	@echo; echo "CONFIG=FILE   another configuration    NODES=cn[01-04]   measure these again as a new job    SYSTEM=no   install no system package"
	@echo "PRESET=quick  1.4 minutes on 2x64 cores, in a campaign of its own (main-quick); standard takes 11, thorough 51"
	@echo "LAUNCH=slurm PARTITION=x   nodes of Slurm    LAUNCH=ansible HOSTS=a,b,c   hosts by SSH    CAMPAIGN=NAME   another campaign"
	@echo "FAIL_ON=not-measured,found   'make run' fails where there is such an outcome (also: not-same, configuration, invalid, nothing)"
	@echo "VERBOSE=1     all of Snakemake's output (it is always in results/<campaign>/logs/run.log)"

demo: .venv/packages.stamp ## a simulated fleet with one slow core, judged and reported in less than a minute; nothing is measured
	@.venv/bin/nodeprint demo

# an option of workflow/run for a variable that is set, be it to nothing: workflow/run rejects that
option = $(if $(filter-out undefined,$(origin $(2))),--$(1) '$($(2))')
CONFIGURED = --config '$(CONFIG)' $(call option,campaign,CAMPAIGN) $(call option,preset,PRESET) $(call option,launch,LAUNCH) \
	$(call option,partition,PARTITION) $(call option,hosts,HOSTS)

run: able-to-build able-to-run kernels ## measure (here, or as the configuration says), judge, and write the PDF
	@workflow/run $(CONFIGURED) $(call option,again,NODES) $(call option,fail-on,FAIL_ON)

COUNT ?= 3
cluster: able-to-test kernels ## the same job through a real Slurm of COUNT=3 virtual nodes here; with FLEET=rome-2x64 simulated ones
	@tests/system/cluster/run '$(COUNT)' '$(FLEET)' '$(DEFECT)'

report: able-to-run ## judge and report again from what is there
	@workflow/run $(CONFIGURED) --report-only

setup: able-to-test kernels ## everything that running and testing need

kernels: able-to-run ## build the kernels
	@MAKE="$(MAKE)" setup/kernels

lint: $(LINT:%=lint-%) ## every linter and type check

lint-python: able-to-test
	ruff check .
	ruff format --check .
	mypy
	git ls-files -z | xargs -0 codespell

lint-workflow: able-to-test
	snakefmt --check workflow
	snakemake --lint
	snakemake --lint --configfile tests/data/lint.yaml
	snakemake --dry-run --quiet all --configfile tests/data/lint.yaml
	zizmor --offline --quiet .github
	@if command -v actionlint > /dev/null; then actionlint; else echo "lint: actionlint is not installed, so its checks are left out"; fi

lint-shell: able-to-test
	shellcheck -x -P SCRIPTDIR workflow/run kernels/archive $(wildcard ansible/roles/nodeprint/files/*) tests/system/cluster/run tests/system/cluster/replay tests/support/fake_slurm.sh $(filter-out setup/compile,$(wildcard setup/*)) kernels/linktest/linktest.sh kernels/command/command.sh tests/system/fresh/run tests/system/offline/run tests/system/emulated/init tests/system/emulated/initramfs tests/support/fake_kernel.sh kernels/node-run .ci/run

lint-ansible: able-to-test
	ansible-lint --offline --strict --profile production ansible

lint-kernels: able-to-test
	$(MAKE) --no-print-directory -C kernels lint

format: able-to-test ## format all sources
	ruff check --fix-only .
	ruff format .
	snakefmt workflow
	$(MAKE) --no-print-directory -C kernels format

test: able-to-test kernels ## unit tests, kernels under sanitizers, the workflow here and on a real Slurm
	$(MAKE) --no-print-directory -C kernels test
	$(MAKE) --no-print-directory test-pure
	$(MAKE) --no-print-directory test-machine

# What failed beside others is tried once more, alone, and both outcomes are printed: other users of a shared machine can
# stop it for longer than a test waits. A test that is wrong fails again, and the first that does ends it.
ALONE = pytest -q -x -m 'not long and not recipe' --last-failed --last-failed-no-failures none

test-pure: able-to-test kernels ## the tests that neither measure nor start services
	pytest -q --cache-clear -m 'not machine and not emulated and not long and not recipe' -n auto --dist worksteal $(TESTS) || $(ALONE)

test-machine: able-to-test kernels ## those that measure, start services or kill what they started
	pytest -q --cache-clear -m 'machine and not long and not recipe' -n 4 --dist loadfile || $(ALONE)

# what the judge and its statistics say, and what holds the house together
QUICK = tests/unit/stats tests/unit/judge tests/unit/report/test_text.py $(wildcard tests/house/test_house.py tests/unit/test_*.py)
test-quick: able-to-test ## a minute for a first change: the judge, its statistics and the rules of the house
	pytest -q -m 'not machine and not emulated and not long and not slow and not recipe' -n auto --dist worksteal $(QUICK)

test-emulated: able-to-test kernels ## node-run in emulated machines of two and of eight sockets
	@setup/system emulated
	pytest -q --cache-clear -m 'emulated and not long' || $(ALONE)

test-all: test test-emulated ## both, and the tests that take minutes each
	@setup/system long
	pytest -q -m 'long and not recipe'

test-recipes: able-to-test kernels ## each recipe of packaging/ loaded by its own tool, in an environment of its own (packages of 15 minutes the first time)
	@setup/phase 'Tools of the recipes' setup/recipes
	pytest -q -rs -m 'recipe' tests/recipes

fuzz: able-to-test kernels ## the tests on made-up input with new examples in every call, damaged files of campaigns (FILES=10000), and numbers on the pages of drawn campaigns (CAMPAIGNS=20)
	pytest -q -n auto --hypothesis-profile=fuzz $$(grep -rl --include='test_*.py' '@given' tests)
	python -m tests.support.mutated_campaigns $(or $(FILES),10000) --seed $$$$
	python -m tests.numbers.random_campaigns $(or $(CAMPAIGNS),20) --seed $$$$

mutants: able-to-test kernels ## small faults, each tried with the tests of its room; survivors are printed (an hour, goes on where it was stopped; DRAW=100 SEED=1)
	python -m tests.mutants --draw $(or $(DRAW),100) --seed $(or $(SEED),1)

test-fresh: ## the README in debootstrap'ed roots, with half a Python and with none, `make run` and `make test` in full (root; SUITE=trixie TARGETS="run test")
	tests/system/fresh/run $(TARGETS)

test-offline: able-to-run ## the main job from the bundle, without network, rights, compiler, likwid and lscpu (root)
	tests/system/offline/run

bench: able-to-test kernels ## ratios against peers and limits, compared with the last time (an hour; BENCH="numa structure")
	python -m bench $(BENCH)

wheel: able-to-test ## wheels with static kernels, for x86-64 and aarch64 (cross-compiled), and the source archive, in build/wheels
	for architecture in x86_64 aarch64; do \
		rm -rf build/lib build/bdist.*; \
		NODEPRINT_WHEEL=$$architecture setup/pip wheel --no-deps --no-build-isolation --wheel-dir build/wheels . || exit 1; \
	done
	python -c 'from setuptools import build_meta; build_meta.build_sdist("build/wheels")' >/dev/null

collection: able-to-test kernels ## the Ansible collection with the node's programs, in build/collection
	@setup/collection

bundle: able-to-run ## everything that a site without internet needs, as one archive
	@setup/bundle

docs: able-to-test ## the documentation as a site, in build/site
	@NO_MKDOCS_2_WARNING=1 mkdocs build --quiet
	@echo "docs: build/site/index.html (with its search: python -m http.server -d build/site)"

pictures: able-to-test ## the picture in the README and those of each page, simulated
	PYTHONPATH=. python docs/pictures.py

clean: ## remove what was built (not what was measured)
	rm -rf .venv kernels/build .snakemake *.egg-info build

# What is installed is looked at in each call; only Python's packages have stamps, and are asked for again when the locked
# ones change. The system's packages come first, as a Python may be among them.
able-to-build:
	@setup/kernels --possible

able-to-run:
	@setup/system python run
	@$(MAKE) --silent --no-print-directory .venv/packages.stamp

able-to-test: able-to-run
	@setup/system test
	@$(MAKE) --silent --no-print-directory .venv/dev.stamp

.venv/packages.stamp: requirements.lock pyproject.toml setup/venv setup/pip
	@setup/system python
	@setup/phase 'Python packages' sh -c 'setup/venv requirements.lock && .venv/bin/python setup/compile'
	@touch $@

.venv/dev.stamp: requirements-dev.lock .venv/packages.stamp
	@setup/phase 'Python packages of the tests' setup/venv requirements-dev.lock
	@touch $@

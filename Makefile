# perusal: what people do with the tree. Everything here is a few lines around cargo and the scripts in .ci/.
#
#   make            build everything into dist/
#   make test       every test, each kind counted; the last line is the sum
#   make demo       a heat solver on four ranks, one of them slow, under a profiler that shows which
#   make install    PREFIX=/usr/local DESTDIR=
#   make help       the rest

PREFIX ?= /usr/local
DESTDIR ?=
DIST ?= dist
CARGO ?= cargo
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

.PHONY: all help setup dist install test demo verify conformance bench peers overhead header unsupported variables clean

all: dist

help:
	@echo "make dist          build the library, the launcher and the compiler wrappers into $(DIST)/"
	@echo "make install       copy $(DIST)/ to PREFIX ($(PREFIX)); DESTDIR is put in front"
	@echo "make test          every test; ends with 'N passed, N failed'"
	@echo "make demo          a heat solver under the PERUSE profiler"
	@echo "make verify        what takes longer: the tests, the conformance suite, long model checks"
	@echo "make conformance   MPICH's own tests against $(DIST)/"
	@echo "make bench         latency, depth and event cost, beside the machine's limits"
	@echo "make peers         MPICH, Open MPI, Intel MPI and $(DIST)/ in turn; ROUNDS=7 METRICS= QUICK=1"
	@echo "make overhead      what listening to events costs, in seven configurations"
	@echo "make header        write include/mpi.h anew from crates/perusal-abi/src/abi/*.csv"
	@echo "make unsupported   write the list in docs/abi.md anew"
	@echo "make variables     write the lists in docs/tool-variables.md anew"
	@echo "make clean         remove what was built"

setup:
	@.ci/setup

dist: setup
	@CARGO="$(CARGO)" .ci/dist "$(DIST)" "$(VERSION)"

install: dist
	@mkdir -p "$(DESTDIR)$(PREFIX)"
	@cp -a "$(DIST)/." "$(DESTDIR)$(PREFIX)/"
	@echo "perusal $(VERSION) installed in $(DESTDIR)$(PREFIX)"

test: setup
	@.ci/setup otf2-tools=otf2-print
	@CARGO="$(CARGO)" .ci/test

demo: dist
	@.ci/demo "$(DIST)"

verify: test conformance
	@CARGO="$(CARGO)" .ci/verify

conformance: dist
	@.ci/conformance "$(DIST)"

bench: dist
	@CARGO="$(CARGO)" .ci/bench "$(DIST)"

peers: dist
	@.ci/peers "$(DIST)"

overhead: dist
	@CARGO="$(CARGO)" .ci/overhead "$(DIST)"

header: setup
	@PERUSAL_BLESS=1 $(CARGO) test --quiet --locked --package perusal-abi --test abi the_header_is_what_the_tables_give >/dev/null
	@echo "include/mpi.h is current"

unsupported: setup
	@PERUSAL_BLESS=1 $(CARGO) test --quiet --locked --package perusal-abi --test abi docs:: >/dev/null
	@echo "docs/abi.md is current"

variables: setup
	@PERUSAL_BLESS=1 $(CARGO) test --quiet --locked --package perusal-cli --test launcher variables_docs:: >/dev/null
	@echo "docs/tool-variables.md is current"

clean:
	rm -rf target dist build

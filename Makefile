# perusal: what people do with the tree. Everything here is a line around `cargo xtask`, which says all that there is.
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
XTASK = $(CARGO) xtask

.PHONY: all help setup dist install test demo verify conformance fabric-test bench peers overhead wheel deb generate clean

all: dist

help:
	@echo "make dist          build the library, the launcher and the compiler wrappers into $(DIST)/"
	@echo "make install       copy $(DIST)/ to PREFIX ($(PREFIX)); DESTDIR is put in front"
	@echo "make test          every test; ends with 'N passed, N failed'"
	@echo "make demo          a heat solver under the PERUSE profiler"
	@echo "make verify        what takes longer: the tests, the conformance suite, long model checks"
	@echo "make conformance   tests of MPICH, mpi4py, rsmpi, PnetCDF, HDF5 on $(DIST)/"
	@echo "make fabric-test   libfabric's own tests against the provider in $(DIST)/, and MPICH's on stock MPICH over it, on a node and between two"
	@echo "make bench         latency, depth and event cost, beside the machine's limits"
	@echo "make peers         MPICH, Open MPI, Intel MPI and $(DIST)/ in turn; ROUNDS=7 METRICS= QUICK=1"
	@echo "make overhead      what listening to events costs, in seven configurations"
	@echo "make wheel         a Python wheel, in build/wheel/"
	@echo "make deb           a Debian package that installs beside other MPIs, in build/deb/"
	@echo "make generate      write anew what follows from tables: constants, include/mpi.h, lists in docs/"
	@echo "make clean         remove what was built"

setup:
	@.ci/setup

dist: setup
	@$(XTASK) dist "$(DIST)"

install: dist
	@mkdir -p "$(DESTDIR)$(PREFIX)"
	@# Files get the owner that installs, and replace what running jobs have open; folders that are there stay as they are.
	@tar -C "$(DIST)" --mode=u+rwX,go+rX,go-w -cf - . | tar -C "$(DESTDIR)$(PREFIX)" --no-same-owner --no-overwrite-dir -xpf -
	@echo "perusal is installed in $(DESTDIR)$(PREFIX)"

test: setup
	@.ci/setup otf2-tools=otf2-print
	@$(XTASK) test

demo: dist
	@$(XTASK) demo "$(DIST)"

verify: test conformance
	@$(XTASK) verify

conformance fabric-test bench peers overhead wheel deb: dist
	@$(XTASK) $@ "$(DIST)"

generate: setup
	@$(XTASK) generate

clean:
	rm -rf target dist build

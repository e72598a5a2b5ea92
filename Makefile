# Sixway. `make` lists what there is to make.

CARGO ?= cargo
KEEP ?=
FUZZ_SECONDS ?= 60
DEMO_FLAGS ?=
BENCH_FLAGS ?=
ORACLE ?=
PACKETS ?= 40000
SEED ?= 1
# Runs the tests and counts them.
TALLY = target/debug/sixway-tally
BASE ?=
MOST ?=
ROUNDS ?=
RECORD ?=
export KEEP

.DEFAULT_GOAL := help
.PHONY: help build build-needs optimised deps peer guest jool bookworm syslog-ng previous demo test test-fast check pages deb static container image bench instructions compare oracle fuzz mutants

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

build-needs: ## installs what compiles the eBPF program, if it is missing (Debian; needs root)
	@packaging/install-needs $$(packaging/build-needs)

build: build-needs ## the gateway and the lab, optimised
	$(CARGO) build --release --locked -p sixway -p sixway-lab

deps: build ## installs the programs that demo, test and bench drive, if they are missing (Debian; needs root)
	@packaging/install-needs $$(target/release/sixway-lab deps | sort -u)

peer: deps ## builds the tunnel module with 6rd for the Linux guest of the interop tests, if it is missing (half a minute)
	@packaging/build-sit-6rd $(CURDIR)/target

guest: deps ## unpacks the kernel of the lab's emulated machines, if it is missing (seconds)
	@packaging/build-guest $(CURDIR)/target

jool: guest ## builds Jool's modules for the kernel of the lab's emulated machines, if they are missing (a minute)
	@packaging/build-jool $(CURDIR)/target

bookworm: deps ## makes a bare Debian 12 for the test of the package, if it is missing (half a minute)
	@packaging/build-bookworm $(CURDIR)/target

syslog-ng: ## unpacks syslog-ng for an interop test of the event log, if it is missing (seconds)
	@packaging/build-syslog-ng $(CURDIR)/target

previous: build-needs ## builds the program of the last version with another map layout, for the tests of upgrades, if it is missing (some minutes)
	@CARGO="$(CARGO)" packaging/build-previous $(CURDIR)/target

demo: deps ## a site behind `sixway up`, and which hosts reach each other (needs root); KEEP=1 keeps the network
	@target/release/sixway-lab demo $(DEMO_FLAGS)

# All crates with the same features each time: so none is compiled twice for the checks and the tests.
WHOLE = --workspace --locked
# The programs that want the optimised ones begin with an i; a pattern is all that cargo knows to leave some out.
FAST = --exclude sixway-fuzz --lib --bins --test '[!i]*'

check: build-needs ## format, clippy, and the rules that can be checked automatically
	$(CARGO) fmt --all --check
	@# libFuzzer itself, which is C++, is not compiled: nothing is linked here.
	CUSTOM_LIBFUZZER_PATH=$(CURDIR)/fuzz/run $(CARGO) clippy $(WHOLE) --all-targets --features sixway-fuzz/gateway,sixway-fuzz/fast_path -- -D warnings
	$(CARGO) test -q $(WHOLE) --test laws

# The gateway with the features that it has alone, as for `make static`; both calls have the same build of the engine.
optimised: build-needs
	$(CARGO) build --release --locked -p sixway --bin sixway
	$(CARGO) build --release --locked -p sixway-dataplane --example oracle --example instructions

test: check optimised ## everything: check, oracle, unit, scenario, property, model, replay and interop tests; SIXWAY_STRICT=1: none may be ignored
	$(CARGO) test -q $(WHOLE) --no-run
	@packaging/install-needs $$(target/debug/sixway-lab deps | sort -u) || echo "going on without: what needs them is shown as ignored"
	@packaging/build-sit-6rd $(CURDIR)/target || echo "going on without: what needs it is shown as ignored"
	@packaging/build-guest $(CURDIR)/target || echo "going on without: what needs it is shown as ignored"
	@packaging/build-jool $(CURDIR)/target || echo "going on without: the lab has no Jool"
	@packaging/build-bookworm $(CURDIR)/target || echo "going on without: what needs it is shown as ignored"
	@packaging/build-syslog-ng $(CURDIR)/target || echo "going on without: what needs it is shown as ignored"
	@CARGO="$(CARGO)" packaging/build-static $(CURDIR)/target || echo "going on without: what needs it is shown as ignored"
	@packaging/build-image $(CURDIR)/target || echo "going on without: what needs it is shown as ignored"
	@$(MAKE) --no-print-directory previous || echo "going on without: what needs it is shown as ignored"
	@ENGINE=$(CURDIR)/target/release/examples/oracle dataplane/examples/oracle/compare "$(ORACLE)" $(PACKETS) $(SEED)
	@SIXWAY=$(CURDIR)/target/release/sixway SIXWAY_INSTRUCTIONS=$(CURDIR)/target/release/examples/instructions SIXWAY_TEST_BUDGET=$${SIXWAY_TEST_BUDGET:-100} \
		$(TALLY) .ci/may-be-ignored $(CARGO) test $(WHOLE) --no-fail-fast

test-fast: check ## the tests that need no optimised program, without the interop tests, with a tenth of the random cases
	$(CARGO) test -q $(WHOLE) $(FAST) --no-run
	@$(TALLY) .ci/may-be-ignored $(CARGO) test $(WHOLE) $(FAST) --no-fail-fast

pages: ## writes the generated parts of docs/ again
	BLESS=1 $(CARGO) test -q -p sixway-dataplane --test all drops_page
	BLESS=1 $(CARGO) test -q -p sixway --test all configuration_page
	BLESS=1 $(CARGO) test -q -p sixway --test all operations_page
	BLESS=1 $(CARGO) test -q -p sixway-lab --test report published

deb: build ## a Debian package in target/deb; the target machine needs no Rust
	@packaging/build-deb target/release/sixway target/deb

static: build-needs ## the gateway without shared libraries, target/static/sixway, for any Linux of this architecture
	@CARGO="$(CARGO)" packaging/build-static $(CURDIR)/target

container: static ## a container image that contains only the gateway, by podman
	podman build -t sixway -f packaging/Containerfile target/static

image: static ## a disk image that boots into a gateway with a menu, target/image/sixway.img (a minute)
	@packaging/build-image $(CURDIR)/target

bench: deps ## figures and their targets (needs root for the part on real packets)
	@target/release/sixway-lab bench $(BENCH_FLAGS)

instructions: $(if $(RECORD),optimised) ## instructions per packet, counted by valgrind; BASE=REV compares with a revision and fails above MOST=1.01; RECORD=1 stores the counts that make test compares with
	@CARGO="$(CARGO)" BASE="$(BASE)" MOST="$(MOST)" dataplane/examples/instructions/compare $(if $(RECORD),--record --binary target/release/examples/instructions)

compare: ## nanoseconds per packet compared with a revision's, both run in turn on one CPU: make compare BASE=REV ROUNDS=11
	@test -n "$(BASE)" || { echo "make compare BASE=revision" >&2; exit 2; }
	@CARGO="$(CARGO)" BASE="$(BASE)" ROUNDS="$(ROUNDS)" dataplane/examples/instructions/compare --time

oracle: ## compares the translation of PACKETS packets with the reference translator, or another one: make oracle ORACLE=PATH
	@CARGO="$(CARGO)" dataplane/examples/oracle/compare "$(ORACLE)" $(PACKETS) $(SEED)

fuzz: ## runs each fuzzer for FUZZ_SECONDS
	cd fuzz && FUZZ_SECONDS=$(FUZZ_SECONDS) ./run

.PHONY: mutants
mutants: ## makes small changes to the code and reports those that no test notices: about SAMPLE=40 changes, by SEED=n
	@CARGO="$(CARGO)" packaging/mutants

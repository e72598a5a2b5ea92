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
export KEEP

.DEFAULT_GOAL := help
.PHONY: help build build-needs deps peer previous demo test check bench instructions compare oracle fuzz mutants

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

previous: build-needs ## builds the program of the last version with other maps, for the tests of upgrades, if it is missing (some minutes)
	@CARGO="$(CARGO)" packaging/build-previous $(CURDIR)/target

demo: deps ## an IPv6-only client opens a page on an IPv4-only server, and more (needs root); KEEP=1 keeps the network
	@target/release/sixway-lab demo $(DEMO_FLAGS)

check: build-needs ## the laws: format, clippy, and what a machine can see of the rest
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@# libFuzzer itself, which is C++, is not compiled: nothing is linked here.
	CUSTOM_LIBFUZZER_PATH=$(CURDIR)/fuzz/run $(CARGO) check -q --locked --manifest-path fuzz/Cargo.toml --bins --features gateway,fast_path
	$(CARGO) test -q --locked -p sixway-lab --test laws

test: check build ## everything: check, oracle, unit, scenario, property, model, replay and interop tests; SIXWAY_STRICT=1: none may be ignored
	@$(MAKE) --no-print-directory peer || echo "going on without: what needs them is shown as ignored"
	@$(MAKE) --no-print-directory previous || echo "going on without: what needs it is shown as ignored"
	@$(MAKE) --no-print-directory oracle
	@$(CARGO) build -q --locked -p sixway-trial
	@SIXWAY=$(CURDIR)/target/release/sixway $(TALLY) .ci/may-be-ignored $(CARGO) test --workspace --locked --no-fail-fast

bench: deps ## figures beside their targets (needs root for the part on real packets)
	@target/release/sixway-lab bench $(BENCH_FLAGS)

instructions: ## instructions per packet, counted by valgrind; make instructions BASE=REV compares with a revision and fails above MOST=1.01
	@CARGO="$(CARGO)" BASE="$(BASE)" MOST="$(MOST)" dataplane/examples/instructions/compare

compare: ## nanoseconds per packet beside a revision, both run in turn on one CPU: make compare BASE=REV ROUNDS=11
	@test -n "$(BASE)" || { echo "make compare BASE=revision" >&2; exit 2; }
	@CARGO="$(CARGO)" BASE="$(BASE)" ROUNDS="$(ROUNDS)" dataplane/examples/instructions/compare --time

oracle: ## compares PACKETS with a reference translator, which is ours, or another one: make oracle ORACLE=PATH
	@CARGO="$(CARGO)" dataplane/examples/oracle/compare "$(ORACLE)" $(PACKETS) $(SEED)

fuzz: ## lets the fuzzers run for FUZZ_SECONDS each
	cd fuzz && FUZZ_SECONDS=$(FUZZ_SECONDS) ./run

.PHONY: mutants
mutants: ## changes the code in small ways and tells which changes no test notices: about SAMPLE=40 of them, by SEED=n
	@CARGO="$(CARGO)" packaging/mutants

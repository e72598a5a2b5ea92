# Sixway. `make` lists what there is to make.

CARGO ?= cargo
KEEP ?=
FUZZ_SECONDS ?= 60
DEMO_FLAGS ?=
BENCH_FLAGS ?=
PACKETS ?= 120000
export KEEP

.DEFAULT_GOAL := help
.PHONY: help build build-needs deps peer previous demo test check bench oracle fuzz

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
	$(CARGO) test -q --locked -p sixway-lab --test laws

test: check ## everything: check, unit, scenario, property, model, replay and interop tests
	@$(MAKE) --no-print-directory peer || echo "going on without: what needs them is shown as ignored"
	@$(MAKE) --no-print-directory previous || echo "going on without: what needs it is shown as ignored"
	SIXWAY=$(CURDIR)/target/release/sixway $(CARGO) test --workspace --locked

bench: deps ## figures beside their targets (needs root for the part on real packets)
	@target/release/sixway-lab bench $(BENCH_FLAGS)

oracle: ## compares with an independent reference translator: make oracle ORACLE=PATH
	@test -n "$(ORACLE)" || { echo "make oracle ORACLE=path/to/siit_oracle.py" >&2; exit 2; }
	@CARGO="$(CARGO)" dataplane/examples/oracle/compare "$(ORACLE)" $(PACKETS)

fuzz: ## lets the fuzzers run for FUZZ_SECONDS each
	cd fuzz && FUZZ_SECONDS=$(FUZZ_SECONDS) ./run

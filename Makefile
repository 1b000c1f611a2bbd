# The ways in. `make help` lists them; tools/ has what they run.
JOBS := $(shell nproc)

.PHONY: help setup build demo test test-full lint format bench matrix clean
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## install what building and testing needs
	@tools/setup dev

build: ## build the library, the command and the tests (build/release)
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS)

demo: ## install, build and see Wherry at work
	@tools/setup demo
	@cmake --preset release -DWHERRY_TESTS=OFF
	@cmake --build --preset release -j $(JOBS)
	@tools/demo

test: ## format, release build, every suite
	@tools/test

test-full: ## the same with sanitizers, libFuzzer, every file linted, longer searches
	@tools/test --full

lint: ## clang-tidy over every file
	@tools/lint --full

format: ## format every C++ file
	@tools/format

bench: ## throughput and latency by size, beside a plain program
	@tools/setup demo
	@cmake --preset release -DWHERRY_TESTS=OFF -DWHERRY_BENCH=ON
	@cmake --build --preset release -j $(JOBS) --target bench
	@bench/run

matrix: ## write docs/capability-matrix.md from what the command answers
	@tools/capability-matrix

clean: ## remove build/
	@rm -rf build

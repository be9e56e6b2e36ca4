# SPDX-FileCopyrightText: 2026 The doorbell authors
# SPDX-License-Identifier: Apache-2.0

# A thin front to CMake: the presets of CMakePresets.json, in the folders that they name.
#
#   GPU=       GPU kernels by whatever compilers are found (the default)
#   GPU=1      fetch NVIDIA's compiler when it is not on PATH; fail without one
#   GPU=0      leave them out
#   JOBS=N     parallel compilations and tests (default: one a core)
#   PREFIX=    where `make install` puts things (default: /usr/local); DESTDIR= stages it elsewhere

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
DESTDIR ?=
GPU ?=
PROGRAM := build/bin/doorbell

ifeq ($(GPU),1)
  gpu := ON
else ifeq ($(GPU),0)
  gpu := OFF
else ifeq ($(GPU),)
  gpu := AUTO
else
  $(error GPU=$(GPU): give GPU=1, GPU=0 or nothing)
endif

ccache := $(shell command -v ccache 2>/dev/null)
# Without it ccache passes over whatever uses a precompiled header, which is nearly everything.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros
launcher := $(if $(ccache),-DCMAKE_C_COMPILER_LAUNCHER=$(ccache) -DCMAKE_CXX_COMPILER_LAUNCHER=$(ccache))
configure = cmake --preset $(1) $(launcher) $(2) -Wno-dev
build = cmake --build --preset $(1) --parallel $(JOBS)

.DEFAULT_GOAL := all
.PHONY: all help demo test test-all check test-long test-guest test-hardware asan tsan bench fuzz docs bundle deb wheel install lint format clean nvcc

all: nvcc  ## build the program: build/bin/doorbell
	@command -v cmake >/dev/null && command -v ninja >/dev/null || { echo 'cmake or ninja is missing: run scripts/install-deps.sh demo' >&2; exit 1; }
	$(call configure,release,-DDOORBELL_GPU=$(gpu) -DDOORBELL_TESTS=OFF -UDOORBELL_CUDA_ARCHITECTURES)
	$(call build,release)

help:  ## this text
	@sed -n 's/^#  *\([A-Z]*=.*\)/  \1/p' Makefile
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*##  *\(.*\)/\1\t\2/p' Makefile | awk -F'\t' '{printf "  make %-13s %s\n", $$1, $$2}'

demo:  ## install what is missing, build, and run every path on its model
	scripts/install-deps.sh demo
	$(MAKE) --no-print-directory all
	$(PROGRAM) demo

test: nvcc  ## install what is missing, build, and test every path, the command line and the report
	scripts/install-deps.sh test
	JOBS=$(JOBS) DOORBELL_GPU=$(gpu) scripts/test.sh

test-all: nvcc  ## the same, and packages, a guest machine's drivers, and the models under the sanitizers
	scripts/install-deps.sh test
	JOBS=$(JOBS) DOORBELL_GPU=$(gpu) scripts/test.sh all

check:  ## after a change: what `make test` does, and nothing is installed
	JOBS=$(JOBS) DOORBELL_GPU=$(gpu) scripts/test.sh

test-long:  ## each sanitizer, the model tests 20 times on a busy machine, a storm of killed clients; an hour
	scripts/install-deps.sh test
	JOBS=$(JOBS) DOORBELL_GPU=$(gpu) scripts/test.sh long

# A real controller is tested with these: the program and the conformance cases.
device_tests = $(call configure,release,-DDOORBELL_GPU=$(gpu) -DDOORBELL_TESTS=ON) && \
  cmake --build --preset release --parallel $(JOBS) --target doorbell_cli nvme_conformance_device_test rdma_verbs_device_test

test-guest: nvcc  ## NVMe through VFIO on QEMU's controllers, in a guest machine
	scripts/install-deps.sh guest
	$(device_tests)
	ctest --test-dir build -L '^guest$$' --output-on-failure --no-tests=error

test-hardware: nvcc  ## DEVICE=0000:01:00.0: the same cases on a controller of yours; ITS DATA IS LOST
	@test -n "$(DEVICE)" || { echo 'give DEVICE=PCI-ADDRESS, bound by doorbell bind' >&2; exit 1; }
	scripts/install-deps.sh guest
	$(device_tests)
	tests/nvme/device_cases.py $(DEVICE) --allow-write

asan:  ## all tests under AddressSanitizer and UndefinedBehaviorSanitizer
	JOBS=$(JOBS) scripts/test.sh asan

tsan:  ## all tests under ThreadSanitizer
	JOBS=$(JOBS) scripts/test.sh tsan

bench: nvcc  ## micro benchmarks of the hot path's steps; ARGS= goes to Google Benchmark
	scripts/install-deps.sh test
	$(call configure,release,-DDOORBELL_GPU=$(gpu) -DDOORBELL_BENCH=ON)
	cmake --build --preset release --parallel $(JOBS) --target doorbell_bench
	build/bin/doorbell_bench $(ARGS)

fuzz:  ## each fuzzer for 60 s; see scripts/fuzz.sh
	scripts/install-deps.sh fuzz
	scripts/fuzz.sh

docs:  ## build/docs/html: pages of the library's headers and of docs
	@scripts/install-deps.sh docs
	@scripts/docs/make.py

bundle: all  ## dist/doorbell-VERSION-linux-ARCH.tar.gz, which runs where nothing is installed
	scripts/bundle.sh

wheel: nvcc  ## dist/doorbell-*.whl: the Python package, which installs without a compiler (docs/python.md)
	scripts/install-deps.sh wheel
	$(MAKE) --no-print-directory all
	scripts/wheel.sh

deb:  ## dist/deb/*.deb: the program, its library and its daemon for Debian 12 (docs/packages.md)
	scripts/install-deps.sh deb
	$(MAKE) --no-print-directory all
	scripts/deb.sh

install: all  ## install the program and the library under PREFIX
	DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX)

lint:  ## formatting, licence headers, ASCII, tracked files, clang-tidy
	scripts/install-deps.sh lint
	scripts/lint.sh

format:  ## reformat the C++ sources in place
	git ls-files -z '*.cpp' '*.hpp' '*.cu' | xargs -0 clang-format -i

nvcc:
ifeq ($(GPU),1)
	@command -v nvcc >/dev/null || { scripts/install-deps.sh gpu && scripts/fetch-nvcc.sh; }
endif

clean:  ## remove build folders; fetched compilers and results stay
	rm -rf build build-debug build-asan build-tsan build-fuzz dist

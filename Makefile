# The front door: each target is one line of work for CMake or a script in tools/ or bench/.
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
PRESET ?= release
FUZZ ?= 600
KERNEL ?=

.PHONY: all build web test test-kernel soak check demo bench install packages format clean
all: build

build:  ## The command, at build/release/src/cmd/clew. PRESET=dev for another preset.
	@tools/install_packages build
	@cmake --preset $(PRESET) > /dev/null
	@cmake --build --preset $(PRESET) -j $(JOBS)

web:  ## The page of clew ui, web/dist, from web/src; needs node and npm. What it gives is committed.
	@cd web && { [ -d node_modules ] || npm ci --no-progress; } && npx --no-install tsc --noEmit && node build.mjs

test:  ## Installs what is needed, builds, runs every test.
	@tools/install_packages build
	@tools/run_tests $(JOBS)

test-kernel:  ## D and queries on Debian's own kernel, in an emulated machine. KERNEL=PACKAGE[/SUITE] for another.
	@tools/install_packages build test
	@[ -n "$(KERNEL)" ] || tests/kernel_machine/fetch_kernel build/kernels
	@cmake --preset test > /dev/null
	@cmake --build --preset test -j $(JOBS) --target clew engine_test kernel_machine_first victim_bare victim_walled
	@if [ -n "$(KERNEL)" ]; then tests/kernel_machine/run_kernels build/test $(KERNEL); \
	else ctest --preset test -R '^kernel_machine' --verbose; fi

soak:  ## The long jobs of tools/soak, some hours; needs what `make test` needs. FUZZ=SECONDS.
	@tools/install_packages build test
	@cmake --preset test > /dev/null
	@cmake --build --preset test -j $(JOBS)
	@tools/sanitized build $(JOBS)
	@tools/soak --fuzz $(FUZZ) build/test

check:  ## The fast checks alone: layers, style, format.
	@tools/check_layers && tools/check_units && tools/check_named_tests && tools/check_style && tools/check_format

demo: build  ## Three questions to a running redis-server.
	@tools/demo build/$(PRESET)

bench: build  ## The table of speed and memory.
	@tools/install_packages bench
	@bench/run build/$(PRESET)

install: build  ## The command, manual pages, completion, vocabulary. Takes PREFIX and DESTDIR.
	@DESTDIR="$(DESTDIR)" cmake --install build/$(PRESET) --prefix "$(PREFIX)"

packages:  ## Installs everything that any target needs.
	@tools/install_packages build test bench

format:  ## Formats the code in place.
	@tools/check_format --fix

clean:
	rm -rf build

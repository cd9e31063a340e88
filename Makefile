# make demo   installs what is missing, builds, runs the main job, says where the report is
# make quickstart   the same on this machine itself, without a guest
# make test   installs what is missing, checks and tests everything
.DELETE_ON_ERROR:
.PHONY: demo quickstart test check sched scx_microquanta build install

HOST := $(shell rustc --print host-tuple)
SCHEDLAB := target/schedlab

# A sched_ext scheduler against the kernel's own, in a guest: experiments/demo.toml.
# Exit code 4 (a trial did not count and was repeated) is no failure of the demo.
demo: build
	$(SCHEDLAB) scheduler install scx_rusty@1.1.4
	$(SCHEDLAB) run experiments/demo.toml || [ $$? -eq 4 ]

# The same question on this machine itself, about policies: no guest, no root.
quickstart: build
	$(SCHEDLAB) run experiments/quickstart.toml

# The binary is target/schedlab; `make install` puts it on the PATH.
build:
	@scripts/setup demo
	cargo build --release --quiet -p schedlab
	@ln -sf $(HOST)/release/schedlab $(SCHEDLAB)

install: build
	install -D $(SCHEDLAB) $(or $(DESTDIR),$(HOME)/.cargo/bin)/schedlab

# Our own sched_ext schedulers, for the tests in guests; they need clang.
CLANG := $(notdir $(lastword $(sort $(wildcard /usr/bin/clang-1[89] /usr/bin/clang-[2-9][0-9]))))

sched:
	cd sched && RUSTFLAGS= BPF_CLANG=$(CLANG) cargo build --quiet --bins --tests

# Micro-quanta for experiments: `scheduler = "scx_microquanta"` finds it afterwards.
scx_microquanta: build
	$(SCHEDLAB) scheduler install scx_microquanta

test:
	@scripts/setup test
	$(MAKE) --no-print-directory check sched
	cargo build --quiet --workspace --bins
	cd sched && RUSTFLAGS= BPF_CLANG=$(CLANG) cargo test --quiet --bins
	cargo test --workspace --no-fail-fast

check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings

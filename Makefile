# make demo   installs what is missing, builds, runs the main job, says where the report is
# make test   installs what is missing, checks and tests everything
.DELETE_ON_ERROR:
.PHONY: demo test build install

HOST := $(shell rustc --print host-tuple)
SCHEDLAB := target/schedlab

demo: build
	$(SCHEDLAB) run experiments/quickstart.toml

# The binary is target/schedlab; `make install` puts it on the PATH.
build:
	@scripts/setup demo
	cargo build --release --quiet -p schedlab
	@ln -sf $(HOST)/release/schedlab $(SCHEDLAB)

install: build
	install -D $(SCHEDLAB) $(or $(DESTDIR),$(HOME)/.cargo/bin)/schedlab

test:
	@scripts/setup test
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo test --workspace

# make demo   installs what is missing, builds, runs the main job, says where the report is
# make quickstart   the same on this machine itself, without a guest
# make banking-local   policies on a banking service under Gatling, without a guest; 17 minutes
# make banking-native   the same without Gatling, by our own load; 20 minutes
# make banking-capacity   the same at shares of its highest rate; 2 and a half hours
# make banking   sched_ext schedulers on the same service in a guest; 40 minutes without KVM
# make install   the program, its man pages and completions, below prefix (DESTDIR is obeyed)
# make deb   a Debian package of the same, with experiments and documents, in target/
# make release   all files of a release for x86-64 and 64-bit ARM, signed, in target/release-files
# make quick   format, clippy and unit tests of the crates that changed
# make test   installs what is missing, checks and tests everything
# make deny   licences and known vulnerabilities of what is linked in; needs cargo-deny
# make wall   equal arms under many kinds of noise, simulated and on this machine; a quarter of an hour
# make verdicts   protocols beside each other, simulated: what they find, what they call falsely, their time
# make test-long   a thousand kills at random times, and what needs emulated CPUs for long; hours
.DELETE_ON_ERROR:
.PHONY: release demo program set-up-demo quickstart banking banking-local banking-native banking-capacity reference test set-up-tests built-tests deny wall wall-of-this-machine verdicts test-long test-java test-sched check sched scx_microquanta build install deb demo-jars quick always

# Without what make says to its own children.
HOST := $(shell MAKEFLAGS= rustc --print host-tuple)
SCHEDLAB := target/schedlab
prefix ?= $(if $(filter 0,$(shell id -u)),/usr/local,$(HOME)/.local)

# A sched_ext scheduler against the kernel's own, in a guest: experiments/demo.toml.
# Exit code 4 (a trial did not count and was repeated) is no failure of the demo.
demo:
	@scripts/setup build
	@$(MAKE) --no-print-directory --jobs=2 program set-up-demo
	@[ -e "$(CACHE)/schedulers/scx_rusty-1.1.4" ] || echo "Building scx_rusty. That takes a minute or two on two CPUs."
	$(SCHEDLAB) scheduler install scx_rusty@1.1.4
	@echo "Comparing both in a guest. That takes three minutes, and some seconds for the kernel the first time."
	$(SCHEDLAB) run experiments/demo.toml || [ $$? -eq 4 ]

# The same question on this machine itself, about policies: no guest, no root.
quickstart: build
	$(SCHEDLAB) run experiments/quickstart.toml

# A banking service, its broker and Gatling; the first build fetches 210 MB.
banking-local: build demo-jars
	$(SCHEDLAB) run experiments/banking-local.toml || [ $$? -eq 4 ]

banking-native: build demo-jars
	$(SCHEDLAB) run experiments/banking-native.toml || [ $$? -eq 4 ]

banking-capacity: build demo-jars
	$(SCHEDLAB) run experiments/banking-capacity.toml || [ $$? -eq 4 ]

# The same in a guest, under sched_ext schedulers. The image's Debian is the host's, since the
# schedulers are linked with its C library.
BANKING_SCHEDULERS = scx_rusty scx_lavd scx_bpfland scx_layered scx_cosmos

banking: build demo-jars
	@scripts/setup image
	for name in $(BANKING_SCHEDULERS); do $(SCHEDLAB) scheduler install $$name || exit; done
	$(MAKE) --no-print-directory demo/target/bank.squashfs
	$(SCHEDLAB) run experiments/banking.toml || [ $$? -eq 4 ]

demo/target/bank.squashfs: demo/target/built demo/target/schedulers
	$(SCHEDLAB) image build $@ --suite "$$(. /etc/os-release; echo $$VERSION_CODENAME)" \
	  default-jre-headless --copy demo/target/bank:/opt/schedlab \
	  --copy demo/target/broker:/opt/schedlab $(addprefix --scheduler ,$(BANKING_SCHEDULERS))

# Sums of the programs that --scheduler takes: the file is as old as their last change, so that the
# image is made anew after an update and not each time. What is not installed, `image build` names.
CACHE = $(or $(SCHEDLAB_CACHE_DIR),$(or $(filter /%,$(XDG_CACHE_HOME)),$(HOME)/.cache)/schedlab)

demo/target/schedulers: always
	@mkdir -p $(@D)
	@for name in $(BANKING_SCHEDULERS); do \
	  sha256sum "$(CACHE)/schedulers/bin/$$name" || echo "$$name is not installed"; \
	done >$@.new 2>/dev/null
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# The binary is target/schedlab.
build: set-up-demo program

program:
	@[ -e $(SCHEDLAB) ] || echo "Building schedlab. The first time takes 4 to 6 minutes on two CPUs."
	cargo build --release --quiet -p schedlab
	@ln -sf $(HOST)/release/schedlab $(SCHEDLAB)

# What builds and runs guests and schedulers. `make demo` installs it while the program is compiled.
set-up-demo:
	@scripts/setup demo

# What can be named, from the tables in the code. A test says when it is out of date.
reference:
	cargo run --quiet -p schedlab -- list reference > docs/reference.new
	mv docs/reference.new docs/reference.md

# The program, its man pages and completions, below DESTDIR and prefix.
install: build
	install -D $(SCHEDLAB) $(DESTDIR)$(prefix)/bin/schedlab
	$(SCHEDLAB) manual $(DESTDIR)$(prefix)/share

deb: build
	@scripts/deb $(SCHEDLAB) target

# From the commit that is checked out; RELEASE_KEY=FILE names the key of ssh that signs it.
release:
	@scripts/setup release
	@scripts/release target/release-files

# Our own sched_ext schedulers, for the tests in guests; they need clang. The shell of each
# line looks it up: make expands all lines of a recipe before it runs the first, which may be
# the one that installs clang.
CLANG = $$(ls -v /usr/bin/clang-1[89] /usr/bin/clang-[2-9][0-9] 2>/dev/null | tail -n 1)

sched:
	cd sched && RUSTFLAGS= BPF_CLANG=$(CLANG) cargo build --quiet --bins --tests

test-sched: sched
	cd sched && RUSTFLAGS= BPF_CLANG=$(CLANG) cargo test --quiet --bins

# Micro-quanta for experiments: `scheduler = "scx_microquanta"` finds it afterwards.
scx_microquanta: build
	$(SCHEDLAB) scheduler install scx_microquanta

# The banking service, its Kafka broker and its load (demo/README.md): each becomes a folder
# of jars below demo/target. The first build fetches 210 MB; later ones need no network.
MVN = mvn -q -B -Dstyle.color=never -f demo/pom.xml

demo-jars: demo/target/built

demo/target/built: $(shell find demo -name target -prune -o -type f -print)
	@scripts/setup jars
	$(MVN) package -DskipTests
	@touch $@

test-java:
	@scripts/setup jars
	$(MVN) package
	@touch demo/target/built

# The program is built with the tests: else its dependencies have other features, and all is compiled twice.
# From nothing, as in CI, what is kept for the next build takes longer than it saves.
test: export CARGO_INCREMENTAL = 0
test:
	@scripts/setup build
	@echo "Building the tests. The first time takes a quarter of an hour on two CPUs."
	$(MAKE) --no-print-directory --jobs=4 --output-sync=target set-up-tests built-tests
	scripts/test

# What the tests need is installed while they are compiled. The three workspaces are built at once: what one
# of them downloads, another one compiles.
set-up-tests:
	@scripts/setup test
	@$(MAKE) --no-print-directory test-java test-sched

built-tests:
	cargo fmt --all --check
	@cargo clippy --version
	scripts/cargo-tests build --quiet --workspace --bin schedlab --tests --examples

# While something is being changed: scripts/quick. `make quick CRATES="stats report"` for these.
quick:
	@scripts/quick $(CRATES)

# By deny.toml. `make deny DENY=--offline` asks the database of advisories that was fetched last.
deny:
	cargo deny $(DENY) check

# What takes too long for each time, by rows: a thousand kills, most promises of scx_microquanta,
# bisections of a scheduler and of a kernel, pilots of turns, faults on Xen, reboots of a machine, a
# connection that is cut fifty times, the longer trials in virtual time. `scripts/test-long list` says
# what each takes, `make test-long ROWS="turns xen"` runs these.
test-long: build sched
	scripts/test-long $(ROWS)

# 10 000 simulated comparisons of equal arms by kinds of noise, then REAL ones on this machine, in turns, which take
# some seconds each. The row of `make test` has 1600 simulated ones.
REAL = 200

wall:
	cargo run --release --quiet -p simulation -- --only wall
	[ "$(REAL)" = 0 ] || $(MAKE) --no-print-directory wall-of-this-machine

wall-of-this-machine: build
	rm -f target/wall.jsonl
	cargo run --release --quiet -p aa -- measure $(SCHEDLAB) target/wall.jsonl --rounds 1 --equal $(REAL) \
	  --slowed 0 --no-sides --turn 10ms --washout 2ms --trial 500ms --min-blocks 1 --equal-blocks 3
	cargo run --release --quiet -p aa -- tables target/wall.jsonl

# The table of `benches/simulation`. The same protocols on this machine: `aa measure` and `aa tables` (docs/statistics.md).
verdicts:
	cargo run --release --quiet -p simulation -- --only verdicts

# Warnings are errors in CI only: a clippy that is newer than the one that CI has knows more of them.
check:
	cargo fmt --all --check
	@cargo clippy --version
	cargo clippy --workspace --all-targets --quiet -- $(if $(CI),-D warnings)

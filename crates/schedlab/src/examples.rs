//! Examples at the end of the help of each command. A test parses all of them as they stand.

pub const RUN: &str = "\
Examples:
  schedlab run -a default -a batch -w wakeup --budget 2m
  schedlab run -a default -a slice=0.3ms -- make -B -j4
  schedlab run --vm debian:sid -a default -a scx_rusty -w wakeup -w hackbench
  schedlab run -a default -a batch -w http --server nginx --beside stress-ng
  schedlab run --target ssh:root@lab3 -a default -a batch -w wakeup
  schedlab run -a default -a nice=5 -w wakeup --in-place always --turn 50ms
  schedlab run experiments/quickstart.toml --live --fail-on regression
  schedlab run experiments/schedtests.toml --notify mailto:me@example.com
  schedlab run --resume results/latest --budget 12m";

pub const HUNT: &str = "\
Examples:
  schedlab hunt --vm debian:sid -a default -a scx_lavd -w wakeup --budget 1h
  schedlab hunt my.toml --event ejected --provoke hotplug,affinity
  schedlab hunt my.toml --event ejected --guests 4 --budget 1h
  schedlab hunt my.toml --event 'request > 3 x p99 of the baseline'
  schedlab hunt my.toml --event ejected --same-below 0.1/min --budget 8h";

pub const CERTIFY: &str = "\
Examples:
  schedlab certify -w wakeup --budget 5m
  schedlab certify experiments/quickstart.toml --copies 5";

pub const BISECT: &str = "\
Examples:
  schedlab bisect scx_rusty --repository scx --good v1.1.3 --bad main -w wakeup
  schedlab bisect kernel --repository linux --good v6.17 --bad v6.18 -w wakeup
  schedlab bisect bin/x x.toml --build make --repository . --good v1 --bad v2";

pub const WATCH: &str = "\
Examples:
  schedlab watch
  schedlab watch results/latest --page
  schedlab watch ssh:root@lab3:/root/results/latest";

pub const PICK: &str = "\
Examples:
  schedlab pick
  schedlab pick --for latency --budget 10m
  schedlab pick --for server -a nice=-5 --only";

pub const TUNE: &str = "\
Examples:
  schedlab tune --vary 'slice=0.1ms..10ms log' -w wakeup --budget 10m
  schedlab tune --vary 'env.THREADS=1..8' --vary nice=0,5 -- make -B
  schedlab tune --vary 'scx_lavd --slice-max-us=1000..20000 log' -w wakeup";

pub const PROPOSE: &str = "\
Examples:
  schedlab propose -a slice=0.3ms -w wakeup --in-place always --budget 1m
  schedlab propose -a default -a batch --new-session -- make -B -j4
  schedlab propose --ledger";

pub const MCP: &str = "\
Examples:
  schedlab mcp
  schedlab mcp --allow vm --knobs base_slice,migration_cost --budget 1h
  schedlab mcp --allow ssh:root@lab3 --arms policy,cpus,quota";

pub const CHECK: &str = "\
Examples:
  schedlab check experiments/quickstart.toml
  schedlab check --vm debian:sid -a default -a scx_lavd -w wakeup";

pub const PLAN: &str = "\
Examples:
  schedlab plan experiments/quickstart.toml
  schedlab plan -a default -a batch -w wakeup --pilot --effect 3%
  schedlab plan --from results/latest --budget 30m";

pub const LIST: &str = "\
Examples:
  schedlab list arms
  schedlab list metrics wakeup
  schedlab list metrics --format json";

pub const REPORT: &str = "\
Examples:
  schedlab report --full
  schedlab report results/latest --format html --output report.html
  schedlab report --open";

pub const DOCTOR: &str = "\
Examples:
  schedlab doctor
  sudo schedlab doctor --fix
  schedlab doctor --target ssh:root@lab3";

pub const TARGET: &str = "\
Examples:
  schedlab target check ssh:root@lab3
  schedlab target check experiment.toml --format json";

pub const OVERHEAD: &str = "\
Examples:
  schedlab overhead --budget 5m
  schedlab overhead --workload hackbench:4";

pub const PACK: &str = "\
Examples:
  schedlab pack
  schedlab pack results/latest --output mine.tar.gz --sign";

pub const VERIFY: &str = "\
Examples:
  schedlab verify mine.tar.gz
  schedlab verify mine.tar.gz --signer ~/.ssh/allowed_signers";

pub const COMPARE: &str = "\
Examples:
  schedlab compare mine.tar.gz theirs.tar.gz
  schedlab compare before.tar.gz results/latest --full";

pub const MERGE: &str = "\
Examples:
  schedlab merge node1/results/latest node2/results/latest
  schedlab merge monday.tar.gz tuesday.tar.gz -o results/both";

pub const RECOMMEND: &str = "\
Examples:
  schedlab recommend results/latest
  schedlab recommend results/latest --weigh 'wakeup p99=3, hackbench=1'
  schedlab recommend monday.tar.gz tuesday.tar.gz --care 1% --format markdown";

pub const GATE: &str = "\
Examples:
  schedlab gate stored.tar.gz results/latest
  schedlab gate stored.tar.gz --fail-on unknown --format junit
  schedlab gate stored.tar.gz results/latest --virtual
  schedlab gate --history results/latest --last 10";

pub const HISTORY: &str = "\
Examples:
  schedlab history add results/latest
  schedlab history list
  schedlab history check --effect 3% --false-alarms 1 --fail-on worse
  schedlab history show 3fa4b1c2
  schedlab history confirm 3fa4b1c2 --budget 5m
  schedlab history close 3fa4b1c2 --because 'the BIOS was updated'
  schedlab history bisect 3fa4b1c2 --budget 5m
  schedlab history page -o history.html
  schedlab history list --format openmetrics
  schedlab history prune --older-than 2y --dry-run";

pub const RESTORE: &str = "\
Examples:
  sudo schedlab restore";

pub const SCHEDULER: &str = "\
Examples:
  schedlab scheduler list
  schedlab scheduler install scx_rusty@1.1.4";

pub const TOOL: &str = "\
Examples:
  schedlab tool list
  schedlab tool install schbench
  schedlab tool install schbench --from /mirrors/schbench.git";

pub const BOOT: &str = "\
Examples:
  sudo schedlab boot plan my-kernels.toml
  sudo schedlab boot start my-kernels.toml
  sudo schedlab boot status";

pub const SERVICE: &str = "\
Examples:
  schedlab service install experiments/schedtests.toml --every night
  schedlab service install nightly.toml --confirm 30m --notify @notify.txt
  schedlab service install my.toml --every 'Mon *-*-* 04:00' --dry-run
  schedlab service remove schedtests";

pub const VM: &str = "\
Examples:
  schedlab vm start --kernel debian:sid --cpus 4
  schedlab vm exec uname -r
  schedlab vm shell
  schedlab vm stop";

pub const KERNEL: &str = "\
Examples:
  schedlab kernel list
  schedlab kernel build debian:linux-source-6.12
  schedlab kernel build ~/src/linux --ref v6.18 --fragment my.config
  schedlab kernel build https://github.com/torvalds/linux --ref v6.18";

pub const IMAGE: &str = "\
Examples:
  schedlab image build root.squashfs memcached nginx-light
  schedlab image build app.squashfs default-jre-headless --copy app.jar:/opt";

pub const IMPORT: &str = "\
Examples:
  schedlab import schedtests results/
  schedlab import mmtests work/log --baseline 6.1.0 --output old
  schedlab import schbench-json default=a/*.json lavd=b/*.json
  schedlab import phoronix composite.xml --format json";

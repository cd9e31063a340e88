package schedlab.broker;

import java.util.Properties;

/** The server properties of one node that is broker and controller, on the loopback device. */
final class Settings {

  private Settings() {}

  static Properties of(Options options, int cpus) {
    Properties properties = new Properties();
    properties.put("process.roles", "broker,controller");
    properties.put("node.id", "1");
    properties.put(
        "listeners",
        "PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d"
            .formatted(options.port(), options.controllerPort()));
    properties.put("advertised.listeners", "PLAINTEXT://127.0.0.1:" + options.port());
    properties.put("controller.listener.names", "CONTROLLER");
    properties.put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
    // A static quorum: the ports may change between two starts on the same data.
    properties.put("controller.quorum.voters", "1@127.0.0.1:" + options.controllerPort());
    properties.put("log.dirs", options.dir().resolve("data").toString());
    properties.put("auto.create.topics.enable", "false");
    alone(properties);
    threads(properties, cpus);
    return properties;
  }

  /** There is one node, so there is one replica of everything. */
  private static void alone(Properties properties) {
    properties.put("offsets.topic.replication.factor", "1");
    properties.put("transaction.state.log.replication.factor", "1");
    properties.put("transaction.state.log.min.isr", "1");
    properties.put("share.coordinator.state.topic.replication.factor", "1");
    properties.put("share.coordinator.state.topic.min.isr", "1");
    // Fifty partitions for offsets are for large clusters; here they only delay the start.
    properties.put("offsets.topic.num.partitions", "1");
    properties.put("transaction.state.log.num.partitions", "1");
    properties.put("share.coordinator.state.topic.num.partitions", "1");
    // All consumers are known to come: the first need not wait for others.
    properties.put("group.initial.rebalance.delay.ms", "0");
  }

  /** Pools follow the CPUs; the cleaner's 128 MB would be a quarter of a small heap. */
  private static void threads(Properties properties, int cpus) {
    properties.put("num.network.threads", String.valueOf(Math.max(1, cpus / 2)));
    properties.put("num.io.threads", String.valueOf(Math.max(2, cpus)));
    properties.put("background.threads", String.valueOf(Math.max(2, cpus)));
    properties.put("log.cleaner.dedupe.buffer.size", String.valueOf(8 << 20));
  }
}

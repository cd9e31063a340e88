package schedlab.broker;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import org.apache.kafka.common.utils.Time;

/**
 * One Kafka node (KRaft, broker and controller in one) as a service of a trial. Formatting, start
 * and topics take one JVM, not three: where a guest is emulated, each costs half a minute.
 */
public final class Broker {

  private static final int ADMIN_TIMEOUT_MS = 60_000;

  private final Options options;

  private Broker(Options options) {
    this.options = options;
  }

  public static void main(String[] arguments) {
    int status = run(List.of(arguments));
    // Kafka's threads would keep the JVM alive after a failure.
    System.exit(status);
  }

  private static int run(List<String> arguments) {
    try {
      Options options = Options.parse(arguments, System.getenv());
      Broker broker = new Broker(options);
      return switch (options.command()) {
        case HELP -> help();
        case FORMAT -> broker.format();
        case START -> broker.start();
        case TOPICS -> broker.topics();
        case READY -> broker.ready();
      };
    } catch (Options.UsageException e) {
      System.err.printf("broker: %s%n%n%s", e.getMessage(), Options.HELP);
      return 2;
    } catch (Exception e) {
      System.err.printf("broker: %s%n", reason(e));
      return 1;
    }
  }

  /** The innermost cause: Kafka wraps "Address already in use" twice. */
  static String reason(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    return cause.getMessage() == null ? cause.toString() : cause.getMessage();
  }

  private static int help() {
    System.out.print(Options.HELP);
    return 0;
  }

  private int format() throws IOException {
    Storage storage = new Storage(options.dir());
    storage.format(storage.write(settings()));
    System.out.println("broker: formatted " + options.dir());
    return 0;
  }

  private int start() throws Exception {
    Ports.checkFree(options);
    Storage storage = new Storage(options.dir());
    Path file = storage.write(settings());
    if (!storage.isFormatted()) {
      storage.format(file);
    }
    HealthServer health = new HealthServer(options);
    KafkaRaftServer server = new KafkaRaftServer(KafkaConfig.fromProps(settings()), Time.SYSTEM);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(health, server), "stop"));
    server.startup();
    health.started();
    makeTopics();
    int status = ready();
    if (status == 0) {
      server.awaitShutdown();
    }
    return status;
  }

  private static void stop(HealthServer health, KafkaRaftServer server) {
    health.close();
    server.shutdown();
    server.awaitShutdown();
    System.out.println("broker: stopped");
  }

  private int topics() throws Exception {
    makeTopics();
    System.out.println("broker: topics " + String.join(", ", options.topics().keySet()));
    return 0;
  }

  private void makeTopics() throws InterruptedException, ExecutionException, TimeoutException {
    try (Cluster cluster = new Cluster(options.port(), ADMIN_TIMEOUT_MS)) {
      cluster.makeTopics(options.topics());
    }
  }

  private int ready() throws InterruptedException {
    long end = System.nanoTime() + options.readyWithin().toNanos();
    try (Cluster cluster = new Cluster(options.port(), 2_000)) {
      while (true) {
        List<String> missing = cluster.missing(options.topics());
        if (missing.isEmpty()) {
          System.out.printf("broker: ready on 127.0.0.1:%d%n", options.port());
          return 0;
        }
        if (System.nanoTime() >= end) {
          System.err.printf(
              "broker: not ready after %d s: %s%n",
              options.readyWithin().toSeconds(), String.join("; ", missing));
          return 1;
        }
        Thread.sleep(100);
      }
    }
  }

  private Properties settings() {
    return Settings.of(options, Runtime.getRuntime().availableProcessors());
  }
}

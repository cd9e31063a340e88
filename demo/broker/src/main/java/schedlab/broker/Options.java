package schedlab.broker;

import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * Request of the user: a command and its options. Each option {@code --some-name} can also be
 * given as the environment variable {@code BROKER_SOME_NAME}; the command line wins.
 */
record Options(
    Command command,
    Path dir,
    int port,
    int controllerPort,
    int healthPort,
    Map<String, Integer> topics,
    Duration readyWithin) {

  enum Command {
    START,
    FORMAT,
    TOPICS,
    READY,
    HELP
  }

  static final String HELP =
      """
      usage: java -cp 'target/broker/*' schedlab.broker.Broker COMMAND [--OPTION VALUE]...

      start    format the directory if it is empty, start the broker, make the topics,
               print "ready", and serve until SIGTERM
      format   only format the directory
      topics   make the topics on a broker that runs; those that exist are left alone
      ready    exit 0 as soon as the broker has a controller and leaders for all topics

      --dir DIR              data and settings of the broker (start, format)
      --port N               where clients connect; 9092
      --controller-port N    where the controller listens; 9093
      --health-port N        GET /health answers 200 when ready, 503 until then; 9094
      --topics A:2,B:1       names and numbers of partitions; transactions:4,fraud-alerts:1
      --wait SECONDS         how long `start` and `ready` wait for all of that; 60

      Each option can be an environment variable too: BROKER_DIR, BROKER_HEALTH_PORT, ...
      All ports are of 127.0.0.1 only. The heap is the JVM's: java -Xmx512m.
      Exit codes: 0 done, 1 it did not work, 2 wrong usage, 143 stopped by SIGTERM.
      """;

  private static final Map<String, String> DEFAULTS =
      Map.of(
          "port", "9092",
          "controller-port", "9093",
          "health-port", "9094",
          "topics", "transactions:4,fraud-alerts:1",
          "wait", "60");

  /** Reads arguments; {@code environment} fills in what they leave out. */
  static Options parse(List<String> arguments, Map<String, String> environment) {
    if (arguments.isEmpty()) {
      throw new UsageException("there is no command");
    }
    Command command = command(arguments.get(0));
    Map<String, String> values = values(arguments.subList(1, arguments.size()), environment);
    Set<Command> local = Set.of(Command.START, Command.FORMAT);
    if (local.contains(command) && !values.containsKey("dir")) {
      throw new UsageException("--dir is missing: the directory for the broker's data");
    }
    Options options =
        new Options(
            command,
            Path.of(values.getOrDefault("dir", "")).toAbsolutePath(),
            port(values, "port"),
            port(values, "controller-port"),
            port(values, "health-port"),
            topics(values.get("topics")),
            Duration.ofSeconds(number(values, "wait", 0, 86_400)));
    options.checkPorts();
    return options;
  }

  private void checkPorts() {
    if (Set.copyOf(List.of(port, controllerPort, healthPort)).size() < 3) {
      throw new UsageException(
          "--port, --controller-port and --health-port must differ: %d, %d, %d"
              .formatted(port, controllerPort, healthPort));
    }
  }

  private static Command command(String word) {
    return switch (word) {
      case "start" -> Command.START;
      case "format" -> Command.FORMAT;
      case "topics" -> Command.TOPICS;
      case "ready" -> Command.READY;
      case "help", "--help", "-h" -> Command.HELP;
      default -> throw new UsageException("'%s' is no command".formatted(word));
    };
  }

  private static Map<String, String> values(
      List<String> arguments, Map<String, String> environment) {
    Map<String, String> values = new HashMap<>(DEFAULTS);
    for (String name : List.of("dir", "port", "controller-port", "health-port", "topics", "wait")) {
      String variable = "BROKER_" + name.toUpperCase(Locale.ROOT).replace('-', '_');
      if (environment.containsKey(variable)) {
        values.put(name, environment.get(variable));
      }
    }
    for (int i = 0; i < arguments.size(); i += 2) {
      String name = arguments.get(i).startsWith("--") ? arguments.get(i).substring(2) : "";
      if (!DEFAULTS.containsKey(name) && !name.equals("dir")) {
        throw new UsageException("'%s' is no option".formatted(arguments.get(i)));
      }
      if (i + 1 == arguments.size()) {
        throw new UsageException("--%s needs a value".formatted(name));
      }
      values.put(name, arguments.get(i + 1));
    }
    return values;
  }

  private static int port(Map<String, String> values, String name) {
    return number(values, name, 1, 65_535);
  }

  private static int number(Map<String, String> values, String name, int least, int most) {
    try {
      int number = Integer.parseInt(values.get(name));
      if (number >= least && number <= most) {
        return number;
      }
    } catch (NumberFormatException e) {
      // It is reported below, together with what is out of range.
    }
    throw new UsageException(
        "--%s must be a number from %d to %d, not '%s'"
            .formatted(name, least, most, values.get(name)));
  }

  private static Map<String, Integer> topics(String text) {
    Map<String, Integer> topics = new LinkedHashMap<>();
    for (String item : text.isBlank() ? new String[0] : text.split(",")) {
      String[] parts = item.trim().split(":", -1);
      boolean named = parts[0].matches("[A-Za-z0-9._-]{1,249}");
      boolean counted = parts.length == 1 || parts.length == 2 && parts[1].matches("[1-9]\\d{0,3}");
      if (!named || !counted) {
        throw new UsageException(
            "--topics wants NAME:PARTITIONS, separated by commas, not '%s'".formatted(item));
      }
      topics.put(parts[0], parts.length == 1 ? 1 : Integer.parseInt(parts[1]));
    }
    return topics;
  }

  /** Wrong usage: the message says what is wrong. */
  static final class UsageException extends RuntimeException {
    UsageException(String message) {
      super(message);
    }
  }
}

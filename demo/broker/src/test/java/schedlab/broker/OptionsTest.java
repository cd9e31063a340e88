package schedlab.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OptionsTest {

  private static Options parse(String... arguments) {
    return Options.parse(List.of(arguments), Map.of());
  }

  @Test
  void what_is_not_given_has_a_default() {
    Options options = parse("start", "--dir", "/tmp/somewhere");
    assertEquals(9092, options.port());
    assertEquals(Map.of("transactions", 4, "fraud-alerts", 1), options.topics());
  }

  @Test
  void the_command_line_wins_over_the_environment() {
    Map<String, String> environment = Map.of("BROKER_PORT", "1111", "BROKER_HEALTH_PORT", "2222");
    Options options = Options.parse(List.of("ready", "--port", "3333"), environment);
    assertEquals(3333, options.port());
    assertEquals(2222, options.healthPort());
  }

  @Test
  void no_topics_are_allowed() {
    assertTrue(parse("topics", "--topics", "").topics().isEmpty());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "launch | 'launch' is no command",
        "start | --dir is missing",
        "ready --prot 1 | '--prot' is no option",
        "ready --port | --port needs a value",
        "ready --port 70000 | --port must be a number from 1 to 65535, not '70000'",
        "ready --wait soon | --wait must be a number",
        "ready --topics a:0 | --topics wants NAME:PARTITIONS, separated by commas, not 'a:0'",
        "ready --topics a:1:2 | --topics wants NAME:PARTITIONS",
        "ready --topics a,,b | --topics wants NAME:PARTITIONS",
        "ready --port 9093 | must differ: 9093, 9093, 9094",
      })
  void wrong_usage_is_named(String line, String message) {
    String[] arguments = line.split(" ");
    var error = assertThrows(Options.UsageException.class, () -> parse(arguments));
    assertTrue(error.getMessage().contains(message), error.getMessage());
  }

  @Test
  void the_broker_listens_on_the_loopback_device_only() {
    var settings = Settings.of(parse("start", "--dir", "/tmp/somewhere"), 2);
    for (String key : List.of("listeners", "advertised.listeners", "controller.quorum.voters")) {
      for (String listener : settings.getProperty(key).split(",")) {
        assertTrue(listener.contains("127.0.0.1:"), key + ": " + listener);
      }
    }
  }
}

package schedlab.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Properties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SettingsTest {

  @Test
  void without_settings_it_is_the_published_run() {
    Settings settings = ProfileTest.settings();
    assertEquals(1, settings.rate());
    assertEquals(30, settings.ramp());
    assertEquals(120, settings.steady());
    assertEquals(100_000, settings.rangeSize());
  }

  @Test
  void a_property_wins_over_the_environment() {
    Properties properties = new Properties();
    properties.setProperty("bank.rate", "0.5");
    Map<String, String> environment = Map.of("BANK_RATE", "2", "BANK_WARM_UP", "9");
    Settings settings = Settings.of(properties, environment);
    assertEquals(0.5, settings.rate());
    assertEquals(9, settings.warmUp());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "rates | 1 | bank.rates is unknown; there are bank.baseUrl, bank.rate,",
        "rate | fast | bank.rate must be a number from 0.001 to 1000.0, not 'fast'",
        "rate | NaN | bank.rate must be",
        "rate | 0 | bank.rate must be",
        "ramp | -1 | bank.ramp must be a whole number from 0 to 86400, not '-1'",
        "ramp | 30s | bank.ramp must be a whole number",
        "seed | x | bank.seed must be a whole number, not 'x'",
        "spread | yes | bank.spread must be true or false, not 'yes'",
        "suspiciousShare | 1.1 | bank.suspiciousShare must be a number from 0.0 to 1.0",
        "steadyRate | 0 | bank.steadyRate must be a number from 0.1",
        "steadyRate | -5 | bank.steadyRate must be a number from 0.1",
        "steadyRate | 20/s | bank.steadyRate must be a number from 0.1 to 100000.0, not '20/s'",
        "steadyRate | 20d | bank.steadyRate must be a number from 0.1",
        "rate | 0x1p1 | bank.rate must be",
        "rate | Infinity | bank.rate must be",
        "warmUp | 0.5 | bank.warmUp must be a whole number from 0",
        "duration | 0 | bank.duration must be a whole number from 1",
        "accounts | 0 | bank.accounts must be a whole number from 2",
        "accounts | -1 | bank.accounts must be a whole number from 2",
        "accounts | many | bank.accounts must be a whole number from 2 to 1000000, not 'many'",
        "rangeSize | 0 | bank.rangeSize must be a whole number from 1",
        "suspiciousShare | half | bank.suspiciousShare must be a number from 0.0",
        "log | / | bank.log must be a file, and '/' is a directory",
        "accountsFile | / | bank.accountsFile: cannot read /",
        "baseUrl | http://127.0.0.1:99999 | bank.baseUrl must be a URL without path",
        "baseUrl | http://bank:port | bank.baseUrl must be a URL without path",
        "baseUrl | http://[ | bank.baseUrl must be a URL without path",
        "duration | 1.5 | bank.duration must be a whole number from 1",
        "accounts | 1 | bank.accounts must be a whole number from 2",
        "baseUrl | localhost:80 | bank.baseUrl must be a URL without path",
        "baseUrl | http://127.0.0.1/api | bank.baseUrl must be a URL without path",
        "accountsFile | /no/such/file | bank.accountsFile: cannot read /no/such/file",
      })
  void a_wrong_setting_is_named(String name, String value, String message) {
    var error =
        assertThrows(IllegalArgumentException.class, () -> ProfileTest.settings(name, value));
    assertTrue(error.getMessage().startsWith(message), error.getMessage());
  }

  @Test
  void a_wrong_variable_of_the_environment_is_named_as_such() {
    Map<String, String> environment = Map.of("BANK_WARM_UP", "soon", "BANK_ACCOUNTS", "0");
    Properties properties = new Properties();
    var error =
        assertThrows(IllegalArgumentException.class, () -> Settings.of(properties, environment));
    assertTrue(error.getMessage().startsWith("BANK_WARM_UP must be"), error.getMessage());
    properties.setProperty("bank.warmUp", "later");
    var other =
        assertThrows(IllegalArgumentException.class, () -> Settings.of(properties, environment));
    assertTrue(other.getMessage().startsWith("bank.warmUp must be"), other.getMessage());
  }

  @Test
  void the_rate_of_the_steady_phase_and_the_length_of_the_profile_scale_the_published_run() {
    Settings settings = ProfileTest.settings("steadyRate", "22.2", "duration", "90");
    assertEquals(0.2, settings.rate(), 1e-9);
    assertEquals(15, settings.ramp());
    assertEquals(60, settings.steady());
  }

  @Test
  void what_is_said_twice_is_refused() {
    for (String name : new String[] {"ramp", "steady"}) {
      var error =
          assertThrows(
              IllegalArgumentException.class,
              () -> ProfileTest.settings("duration", "90", name, "7"));
      assertEquals(
          "bank.duration and bank.%s say the same thing: leave one out".formatted(name),
          error.getMessage());
    }
    assertThrows(
        IllegalArgumentException.class,
        () -> ProfileTest.settings("steadyRate", "20", "rate", "0.3"));
  }

  @Test
  void a_run_of_no_time_is_refused() {
    var error =
        assertThrows(
            IllegalArgumentException.class, () -> ProfileTest.settings("ramp", "0", "steady", "0"));
    assertTrue(error.getMessage().contains("nothing to do"), error.getMessage());
  }
}

package schedlab.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class ProfileTest {

  static Settings settings(String... pairs) {
    Properties properties = new Properties();
    for (int i = 0; i < pairs.length; i += 2) {
      properties.setProperty("bank." + pairs[i], pairs[i + 1]);
    }
    return Settings.of(properties, Map.of());
  }

  private static long[] due(Kind kind, String... pairs) {
    return Profile.dueMs(new Profile(settings(pairs)).measured(kind));
  }

  @ParameterizedTest
  @CsvSource({
    "CREATE_ACCOUNT, 1530",
    "TRANSFER, 3150",
    "RISK_ANALYSIS, 1560",
    "PORTFOLIO_OPTIMIZATION, 1260",
    "FRAUD_CHECK, 2400",
    "PRIME_SEARCH, 1260",
    "GET_BALANCE, 4650",
    "TRANSACTION_HISTORY, 1560"
  })
  void a_scenario_has_as_many_requests_as_the_published_run(Kind kind, int count) {
    assertEquals(count, due(kind).length);
  }

  @Test
  void there_are_17370_in_all() {
    assertEquals(17_370, Arrays.stream(Kind.values()).mapToInt(kind -> due(kind).length).sum());
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void the_factor_scales_the_rates_and_not_the_time(Kind kind) {
    long[] published = due(kind);
    long[] fifth = due(kind, "rate", "0.2");
    assertEquals(published.length / 5.0, fifth.length, 2);
    assertTrue(fifth[fifth.length - 1] < 180_000);
    assertTrue(fifth[fifth.length - 1] > 170_000);
  }

  @Test
  void users_of_the_steady_phase_are_evenly_spaced() {
    long[] due = due(Kind.TRANSFER, "ramp", "0", "steady", "10");
    assertEquals(200, due.length);
    for (int i = 1; i < due.length; i++) {
      assertEquals(50, due[i] - due[i - 1], 1);
    }
  }

  @Test
  void the_measured_part_begins_when_the_warm_up_has_ended() {
    Profile profile = new Profile(settings("warmUp", "7", "ramp", "2", "steady", "3"));
    long[] warmUp = Profile.dueMs(profile.warmUp(Kind.GET_BALANCE));
    long[] measured = Profile.dueMs(profile.measured(Kind.GET_BALANCE));
    assertEquals(7 * 30, warmUp.length);
    assertTrue(warmUp[warmUp.length - 1] < 7_000);
    assertEquals(7_000, measured[0]);
  }

  @Test
  void scenarios_that_are_spread_have_as_many_requests_and_do_not_begin_together() {
    String[] spread = {"spread", "true", "warmUp", "4", "ramp", "2", "steady", "3"};
    Profile profile = new Profile(settings(spread));
    // All together have 111 requests a second.
    assertEquals(4_000, Profile.dueMs(profile.measured(Kind.CREATE_ACCOUNT))[0]);
    assertEquals(4_009, Profile.dueMs(profile.measured(Kind.TRANSFER))[0]);
    assertEquals(4_063, Profile.dueMs(profile.measured(Kind.TRANSACTION_HISTORY))[0]);
    for (Kind kind : Kind.values()) {
      long[] together = due(kind, "warmUp", "4", "ramp", "2", "steady", "3");
      assertEquals(together.length, due(kind, spread).length);
      long[] warmUp = Profile.dueMs(profile.warmUp(kind));
      assertTrue(warmUp[warmUp.length - 1] < 4_000, "the warm-up ends before what is measured");
    }
  }

  @ParameterizedTest
  @EnumSource(Kind.class)
  void a_scenario_whose_turn_is_after_the_warm_up_has_none(Kind kind) {
    // A scenario begins each two seconds, so the turn of the third is when the warm-up has ended.
    String[] slow = {"spread", "true", "steadyRate", "0.5", "warmUp", "4"};
    Profile profile = new Profile(settings(slow));
    assertEquals(kind.ordinal() < 2, profile.warmUp(kind).length > 0);
    for (long dueMs : Profile.dueMs(profile.warmUp(kind))) {
      assertTrue(dueMs < 4_000, kind + " is warmed up at " + dueMs + " ms");
    }
    for (long dueMs : Profile.dueMs(profile.measured(kind))) {
      assertTrue(dueMs >= 4_000 + 2_000 * kind.ordinal(), kind + " begins at " + dueMs + " ms");
    }
  }

  @Test
  void a_profile_in_which_nobody_comes_is_refused() {
    new Profile(settings("steadyRate", "20", "duration", "1")).check();
    Profile empty = new Profile(settings("steadyRate", "0.1", "duration", "1"));
    var error = assertThrows(IllegalArgumentException.class, empty::check);
    assertTrue(error.getMessage().contains("raise bank.steadyRate"), error.getMessage());
  }

  @Test
  void without_a_warm_up_no_scenario_has_steps_of_one() {
    for (String spread : new String[] {"true", "false"}) {
      Profile profile = new Profile(settings("spread", spread));
      for (Kind kind : Kind.values()) {
        assertEquals(0, profile.warmUp(kind).length);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "0, WARM_UP",
    "6999, WARM_UP",
    "7000, RAMP_UP",
    "8999, RAMP_UP",
    "9000, STEADY",
    "11999, STEADY",
    "12000, RAMP_DOWN",
    "13999, RAMP_DOWN"
  })
  void each_moment_is_in_one_phase(long dueMs, Phase phase) {
    Profile profile = new Profile(settings("warmUp", "7", "ramp", "2", "steady", "3"));
    assertEquals(phase, profile.phaseAt(dueMs));
  }

  @Test
  void while_a_scenario_that_begins_later_ramps_up_nothing_is_steady() {
    Profile profile =
        new Profile(settings("warmUp", "7", "ramp", "2", "steady", "20", "spread", "true"));
    Kind last = Kind.values()[Kind.values().length - 1];
    long first = Profile.dueMs(profile.measured(last))[0];
    assertTrue(first > 7_000, last + " begins at " + first + " ms");
    assertEquals(Phase.RAMP_UP, profile.phaseAt(9_000));
    assertEquals(Phase.STEADY, profile.phaseAt(first + 2_000));
    assertEquals(Phase.STEADY, profile.phaseAt(28_999));
    assertEquals(Phase.RAMP_DOWN, profile.phaseAt(29_000));
  }
}

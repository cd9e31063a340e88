package schedlab.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class DrawTest {

  private static List<Draw> draws(Kind kind, boolean warmUp, int accounts, String... settings) {
    var stream = new Draw.Stream(ProfileTest.settings(settings), accounts, kind, warmUp);
    return IntStream.range(0, 10_000).mapToObj(stream::at).toList();
  }

  @Test
  void a_seed_draws_the_same_each_time() {
    assertEquals(
        draws(Kind.TRANSFER, false, 50, "seed", "7"), draws(Kind.TRANSFER, false, 50, "seed", "7"));
  }

  @Test
  void seeds_scenarios_and_the_warm_up_draw_differently() {
    List<Draw> draws = draws(Kind.TRANSFER, false, 50, "seed", "7");
    assertNotEquals(draws, draws(Kind.TRANSFER, false, 50, "seed", "8"));
    assertNotEquals(draws, draws(Kind.FRAUD_CHECK, false, 50, "seed", "7"));
    assertNotEquals(draws, draws(Kind.TRANSFER, true, 50, "seed", "7"));
  }

  @Test
  void nobody_sends_to_himself_and_every_account_takes_part() {
    Set<Integer> senders = new HashSet<>();
    Set<Integer> receivers = new HashSet<>();
    for (Draw draw : draws(Kind.TRANSFER, false, 50)) {
      assertNotEquals(draw.sender(), draw.receiver());
      senders.add(draw.sender());
      receivers.add(draw.receiver());
    }
    assertEquals(50, senders.size());
    assertEquals(senders, receivers);
  }

  @Test
  void two_accounts_are_enough() {
    for (Draw draw : draws(Kind.TRANSFER, false, 2)) {
      assertEquals(1, draw.sender() + draw.receiver());
    }
  }

  @Test
  void the_share_of_suspicious_amounts_is_the_one_asked_for() {
    long suspicious =
        draws(Kind.TRANSFER, false, 50, "suspiciousShare", "0.05").stream()
            .filter(Draw::suspicious)
            .count();
    // 500 of 10 000 draws, give or take four standard deviations of 21.8.
    assertEquals(500, suspicious, 88);
    assertTrue(
        draws(Kind.TRANSFER, false, 50, "suspiciousShare", "0").stream()
            .noneMatch(Draw::suspicious));
  }

  @Test
  void amounts_are_clearly_on_one_side_of_the_service_s_rule() {
    for (Draw draw : draws(Kind.TRANSFER, false, 50, "suspiciousShare", "0.5")) {
      long cents = draw.amountCents();
      assertTrue(draw.suspicious() ? cents >= 20_000_00 : cents < 4_000_00, draw.toString());
      assertTrue(draw.amount().matches("\\d+\\.\\d\\d"), draw.amount());
    }
  }

  @Test
  void the_expected_number_of_primes_is_that_of_the_tables() {
    assertEquals(0, Requests.primesUpTo(1));
    assertEquals(25, Requests.primesUpTo(100));
    assertEquals(9_592, Requests.primesUpTo(100_000));
    assertEquals(664_579, Requests.primesUpTo(10_000_000));
  }
}

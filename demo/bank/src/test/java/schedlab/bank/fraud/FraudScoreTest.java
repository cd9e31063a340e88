package schedlab.bank.fraud;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import schedlab.bank.money.Money;

class FraudScoreTest {

  private static final int DRAWS = 10_000;

  /** The threshold that the service runs with, not one of the tests. */
  private static int threshold() throws IOException {
    Properties production = new Properties();
    try (InputStream in = FraudScore.class.getResourceAsStream("/application.properties")) {
      production.load(in);
    }
    return Integer.parseInt(production.getProperty("bank.fraud.threshold"));
  }

  @ParameterizedTest
  @CsvSource({
    // amount, balance, recent transfers, points for amount, share, velocity
    "399.99, 1000000, 0, 0, 0, 0",
    "400.00, 1000000, 0, 1, 0, 0",
    "24000, 1000000, 0, 60, 0, 0",
    "999999, 1000000, 0, 60, 19, 0",
    "50, 1000, 0, 0, 1, 0",
    "49.99, 1000, 0, 0, 0, 0",
    "10, 10, 0, 0, 20, 0",
    "10, 0, 0, 0, 20, 0",
    "10, 1000000, 5, 0, 0, 0",
    "10, 1000000, 6, 0, 0, 2",
    "10, 1000000, 15, 0, 0, 20",
    "10, 1000000, 900, 0, 0, 20",
  })
  void points_are_those_of_the_formula(
      String amount, String balance, int recent, int points, int share, int velocity) {
    FraudScore score = FraudScore.of(Money.valueOf(amount), Money.valueOf(balance), recent);
    assertThat(score).isEqualTo(new FraudScore(points, share, velocity));
    assertThat(score.total()).isEqualTo(points + share + velocity).isBetween(0, 100);
  }

  @Test
  void production_passes_every_transfer_below_4000_however_unusual() throws IOException {
    SplittableRandom random = new SplittableRandom(1);
    for (int i = 0; i < DRAWS; i++) {
      Money amount = new Money(random.nextLong(1, 4_000_00));
      Money balance = new Money(random.nextLong(amount.cents()));
      assertThat(FraudScore.of(amount, balance, 1_000).total()).isLessThan(threshold());
    }
  }

  @Test
  void production_refuses_every_transfer_from_20000_on_however_usual() throws IOException {
    SplittableRandom random = new SplittableRandom(1);
    for (int i = 0; i < DRAWS; i++) {
      Money amount = new Money(random.nextLong(20_000_00, 1_000_000_00));
      Money balance = new Money(1_000_000_000_00L);
      assertThat(FraudScore.of(amount, balance, 0).total()).isGreaterThanOrEqualTo(threshold());
    }
  }

  @Test
  void between_the_two_it_depends_on_what_else_is_unusual() throws IOException {
    Money amount = Money.valueOf("10000");
    assertThat(FraudScore.of(amount, Money.valueOf("1000000"), 0).total()).isLessThan(threshold());
    assertThat(FraudScore.of(amount, Money.valueOf("10000"), 9).total())
        .isGreaterThanOrEqualTo(threshold());
  }
}

package schedlab.bank.risk;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import schedlab.bank.compute.ComputePool;
import schedlab.bank.risk.RiskAnalysis.Risk;

class RiskAnalysisTest {

  private static Risk analyse(long accountId, int paths, int threads) {
    ComputePool pool = new ComputePool(threads);
    try {
      return new RiskAnalysis(new RiskRules(paths, 20), pool).of(accountId);
    } finally {
      pool.stop();
    }
  }

  @Test
  void an_account_has_the_same_risk_each_time_and_on_any_number_of_threads() {
    assertThat(analyse(7, 4_000, 1)).isEqualTo(analyse(7, 4_000, 5));
  }

  @Test
  void accounts_differ() {
    assertThat(analyse(7, 4_000, 2)).isNotEqualTo(analyse(8, 4_000, 2));
  }

  @Test
  void the_worst_cases_lose_more_than_the_value_at_risk() {
    for (long account = 1; account <= 20; account++) {
      Risk risk = analyse(account, 4_000, 2);
      assertThat(risk.valueAtRisk()).isBetween(0.0, 1.0);
      assertThat(risk.expectedShortfall()).isGreaterThan(risk.valueAtRisk());
      assertThat(risk.meanReturn()).isGreaterThan(-risk.valueAtRisk());
    }
  }

  @Test
  void more_paths_come_closer_to_the_formula() {
    // The mean return of account 7 by the closed form: exp(drift * days / 252) - 1.
    double drift = new SplittableRandom(7).nextDouble(0.02, 0.08);
    double expected = Math.exp(drift * 20 / 252) - 1;
    double error = Math.abs(analyse(7, 1_000_000, 2).meanReturn() - expected);
    assertThat(error).isLessThan(0.0005);
  }
}

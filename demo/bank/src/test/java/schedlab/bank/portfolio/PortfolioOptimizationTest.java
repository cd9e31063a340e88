package schedlab.bank.portfolio;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import org.junit.jupiter.api.Test;
import schedlab.bank.compute.ComputePool;
import schedlab.bank.portfolio.PortfolioOptimization.Portfolio;

class PortfolioOptimizationTest {

  private static Portfolio optimize(long accountId, int iterations) {
    ComputePool pool = new ComputePool(2);
    try {
      return new PortfolioOptimization(new PortfolioRules(30, 250, iterations), pool).of(accountId);
    } finally {
      pool.stop();
    }
  }

  @Test
  void weights_are_shares_of_the_whole() {
    double[] weights = optimize(3, 1_000).weights();
    assertThat(weights).hasSize(30);
    assertThat(Arrays.stream(weights).min().orElseThrow()).isNotNegative();
    assertThat(Arrays.stream(weights).sum()).isCloseTo(1, within(1e-9));
  }

  @Test
  void an_account_has_the_same_portfolio_each_time() {
    assertThat(optimize(3, 1_000)).usingRecursiveComparison().isEqualTo(optimize(3, 1_000));
  }

  @Test
  void accounts_differ() {
    assertThat(optimize(3, 1_000).weights()).isNotEqualTo(optimize(4, 1_000).weights());
  }

  @Test
  void each_step_makes_the_portfolio_better_until_there_is_nothing_to_gain() {
    double equal = optimize(3, 0).utility();
    double some = optimize(3, 20).utility();
    double many = optimize(3, 1_000).utility();
    double more = optimize(3, 2_000).utility();
    assertThat(some).isGreaterThan(equal);
    assertThat(many).isGreaterThanOrEqualTo(some);
    assertThat(more).isCloseTo(many, within(1e-9));
  }
}

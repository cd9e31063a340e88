package schedlab.bank.risk;

import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.springframework.stereotype.Service;
import schedlab.bank.compute.ComputePool;

/**
 * Simulates what an account may be worth after some days (geometric Brownian motion, Monte Carlo)
 * and reads value at risk and expected shortfall off the results. The draws depend on the account's
 * number only, so an account has the same relative risk on every machine and at every time.
 */
@Service
class RiskAnalysis {

  private static final int PARTS = 8;
  private static final int TRADING_DAYS = 252;
  private static final double TAIL = 0.05;

  private final RiskRules rules;
  private final ComputePool pool;

  RiskAnalysis(RiskRules rules, ComputePool pool) {
    this.rules = rules;
    this.pool = pool;
  }

  /**
   * Shares of the balance.
   *
   * @param valueAtRisk what is lost or more in 5 % of the futures
   * @param expectedShortfall what is lost in these 5 % on average
   */
  record Risk(double meanReturn, double valueAtRisk, double expectedShortfall) {}

  Risk of(long accountId) {
    List<double[]> parts = pool.inParts(PARTS, part -> simulate(accountId, part));
    double[] returns = parts.stream().flatMapToDouble(Arrays::stream).sorted().toArray();
    int tail = Math.max(1, (int) (returns.length * TAIL));
    double worst = Arrays.stream(returns, 0, tail).sum() / tail;
    double mean = Arrays.stream(returns).sum() / returns.length;
    return new Risk(mean, -returns[tail - 1], -worst);
  }

  /** The returns of a part's paths. Each part has draws of its own, whoever computes it. */
  private double[] simulate(long accountId, int part) {
    SplittableRandom random = new SplittableRandom(31 * accountId + part);
    Market market = Market.of(accountId);
    int from = rules.paths() * part / PARTS;
    int to = rules.paths() * (part + 1) / PARTS;
    double[] returns = new double[to - from];
    for (int path = 0; path < returns.length; path++) {
      double value = 1;
      for (int day = 0; day < rules.days(); day++) {
        value *= StrictMath.exp(market.drift() + market.volatility() * random.nextGaussian());
      }
      returns[path] = value - 1;
    }
    return returns;
  }

  /** Daily drift and volatility: 2 to 8 % and 10 to 40 % a year. */
  private record Market(double drift, double volatility) {
    static Market of(long accountId) {
      SplittableRandom random = new SplittableRandom(accountId);
      double yearlyDrift = random.nextDouble(0.02, 0.08);
      double yearlyVolatility = random.nextDouble(0.10, 0.40);
      double variance = yearlyVolatility * yearlyVolatility / TRADING_DAYS;
      return new Market(yearlyDrift / TRADING_DAYS - variance / 2, StrictMath.sqrt(variance));
    }
  }
}

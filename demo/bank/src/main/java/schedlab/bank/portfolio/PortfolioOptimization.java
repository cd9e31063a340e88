package schedlab.bank.portfolio;

import java.util.Arrays;
import java.util.SplittableRandom;
import org.springframework.stereotype.Service;
import schedlab.bank.compute.ComputePool;

/**
 * Finds weights of assets with a good return for their risk: mean-variance optimization by
 * projected gradient ascent, without short sales. The returns are drawn from the account's number,
 * and the number of steps is fixed, so that each request is the same amount of work.
 */
@Service
class PortfolioOptimization {

  private static final double RISK_AVERSION = 5;
  private static final double STEP = 0.5;

  private final PortfolioRules rules;
  private final ComputePool pool;

  PortfolioOptimization(PortfolioRules rules, ComputePool pool) {
    this.rules = rules;
    this.pool = pool;
  }

  /** Weights add up to 1; the others are for the whole period. */
  record Portfolio(double[] weights, double expectedReturn, double variance, double utility) {}

  /** The gradient steps depend on each other, so this is one part, on one compute thread. */
  Portfolio of(long accountId) {
    return pool.inParts(1, part -> optimize(accountId)).get(0);
  }

  private Portfolio optimize(long accountId) {
    double[][] returns = returns(accountId);
    double[] means = means(returns);
    double[][] covariance = covariance(returns, means);
    double[] weights = new double[rules.assets()];
    Arrays.fill(weights, 1.0 / weights.length);
    for (int i = 0; i < rules.iterations(); i++) {
      weights = ascend(weights, means, covariance);
    }
    double mean = dot(weights, means);
    double variance = dot(weights, times(covariance, weights));
    return new Portfolio(weights, mean, variance, mean - RISK_AVERSION / 2 * variance);
  }

  /** Daily returns scaled to the whole period: by asset, then by day. */
  private double[][] returns(long accountId) {
    SplittableRandom random = new SplittableRandom(~accountId);
    double[][] returns = new double[rules.assets()][rules.days()];
    double[] market = random.doubles(rules.days(), -0.2, 0.2).toArray();
    for (double[] asset : returns) {
      double beta = random.nextDouble(0.2, 1.8);
      double drift = random.nextDouble(0.0, 0.15);
      for (int day = 0; day < asset.length; day++) {
        asset[day] = drift + beta * market[day] + random.nextDouble(-0.3, 0.3);
      }
    }
    return returns;
  }

  private static double[] means(double[][] returns) {
    return Arrays.stream(returns).mapToDouble(r -> Arrays.stream(r).sum() / r.length).toArray();
  }

  private static double[][] covariance(double[][] returns, double[] means) {
    int n = returns.length;
    double[][] covariance = new double[n][n];
    for (int i = 0; i < n; i++) {
      for (int j = 0; j <= i; j++) {
        double sum = 0;
        for (int day = 0; day < returns[i].length; day++) {
          sum += (returns[i][day] - means[i]) * (returns[j][day] - means[j]);
        }
        covariance[i][j] = sum / (returns[i].length - 1);
        covariance[j][i] = covariance[i][j];
      }
    }
    return covariance;
  }

  private static double[] ascend(double[] weights, double[] means, double[][] covariance) {
    double[] risk = times(covariance, weights);
    double[] moved = new double[weights.length];
    for (int i = 0; i < moved.length; i++) {
      moved[i] = weights[i] + STEP * (means[i] - RISK_AVERSION * risk[i]);
    }
    return ontoSimplex(moved);
  }

  /** The nearest weights that are not negative and add up to 1 (Held, Wolfe, Crowder 1974). */
  private static double[] ontoSimplex(double[] point) {
    double[] sorted = point.clone();
    Arrays.sort(sorted);
    double sum = 0;
    double shift = 0;
    for (int i = 1; i <= sorted.length; i++) {
      double largest = sorted[sorted.length - i];
      sum += largest;
      double candidate = (sum - 1) / i;
      if (largest > candidate) {
        shift = candidate;
      }
    }
    double subtracted = shift;
    return Arrays.stream(point).map(x -> Math.max(0, x - subtracted)).toArray();
  }

  private static double[] times(double[][] matrix, double[] vector) {
    return Arrays.stream(matrix).mapToDouble(row -> dot(row, vector)).toArray();
  }

  private static double dot(double[] a, double[] b) {
    double sum = 0;
    for (int i = 0; i < a.length; i++) {
      sum += a[i] * b[i];
    }
    return sum;
  }
}

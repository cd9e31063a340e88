package schedlab.load;

import java.util.Arrays;

/** The eight scenarios of the published run, with their rates per second. */
enum Kind {
  CREATE_ACCOUNT("Create Account", 1, 10),
  TRANSFER("Transfer", 5, 20),
  RISK_ANALYSIS("Risk Analysis", 2, 10),
  PORTFOLIO_OPTIMIZATION("Portfolio Optimization", 2, 8),
  FRAUD_CHECK("Fraud Check", 5, 15),
  PRIME_SEARCH("Prime Search", 2, 8),
  GET_BALANCE("Get Balance", 5, 30),
  TRANSACTION_HISTORY("Transaction History", 2, 10);

  private final String title;
  private final double lowRate;
  private final double highRate;

  Kind(String title, double lowRate, double highRate) {
    this.title = title;
    this.lowRate = lowRate;
    this.highRate = highRate;
  }

  String title() {
    return title;
  }

  /** The rate where the ramp up begins and the ramp down ends. */
  double lowRate() {
    return lowRate;
  }

  /** The rate of the steady phase. */
  double highRate() {
    return highRate;
  }

  /** The rate of all together in the steady phase. */
  static double steadyRate() {
    return Arrays.stream(values()).mapToDouble(Kind::highRate).sum();
  }
}

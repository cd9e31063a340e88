package schedlab.bank.fraud;

import schedlab.bank.money.Money;

/**
 * How suspicious a transfer is, from 0 to 100 points.
 *
 * <ul>
 *   <li>amount: a point for each full 400.00, at most 60;
 *   <li>share: a point for each full 5 % of the balance that leaves the account, at most 20;
 *   <li>velocity: two points for each transfer beyond the fifth that the sender has made within the
 *       window, at most 20.
 * </ul>
 *
 * <p>With the threshold of production, 50, a transfer of less than 4 000.00 always passes (9 + 20 +
 * 20 points at the most), one of 20 000.00 or more never does (50 points for the amount alone), and
 * between the two it depends on what else is unusual.
 */
public record FraudScore(int amount, int share, int velocity) {

  private static final long CENTS_OF_A_POINT = 400_00;
  private static final int PERCENT_OF_A_POINT = 5;
  private static final int FREE_TRANSFERS = 5;

  public static FraudScore of(Money amount, Money balance, int recentTransfers) {
    return new FraudScore(
        (int) Math.min(60, amount.cents() / CENTS_OF_A_POINT),
        share(amount, balance),
        Math.max(0, Math.min(20, 2 * (recentTransfers - FREE_TRANSFERS))));
  }

  private static int share(Money amount, Money balance) {
    if (amount.compareTo(balance) >= 0) {
      return 20;
    }
    // The amount is below the balance, and so far below what a long can hold.
    return (int) (amount.cents() * 100 / balance.cents() / PERCENT_OF_A_POINT);
  }

  public int total() {
    return amount + share + velocity;
  }
}

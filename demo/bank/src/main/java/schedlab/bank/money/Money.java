package schedlab.bank.money;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonValue;
import java.math.BigDecimal;

/**
 * An amount of money, exact to the cent. It may be negative: the side of a transfer that pays is.
 *
 * <p>Reading refuses what has more than two decimals and what is beyond ±1e12, so that sums of
 * millions of amounts stay far from the end of a long.
 */
public record Money(long cents) implements Comparable<Money> {

  public static final Money ZERO = new Money(0);

  private static final BigDecimal LARGEST = new BigDecimal("1e12");

  @JsonCreator(mode = JsonCreator.Mode.DELEGATING)
  public static Money of(BigDecimal amount) {
    // Compared before anything is expanded: 1e999999999 is a short text and a long number.
    if (amount.abs().compareTo(LARGEST) > 0) {
      throw new InvalidAmountException("an amount is at most 1000000000000.00");
    }
    if (amount.stripTrailingZeros().scale() > 2) {
      throw new InvalidAmountException("an amount has at most two decimals");
    }
    return new Money(amount.movePointRight(2).longValueExact());
  }

  /** Spring finds this for parameters of requests. */
  public static Money valueOf(String text) {
    try {
      return of(new BigDecimal(text.trim()));
    } catch (NumberFormatException e) {
      throw new InvalidAmountException("'%s' is no amount".formatted(text));
    }
  }

  @JsonValue
  public BigDecimal toDecimal() {
    return BigDecimal.valueOf(cents, 2);
  }

  public Money plus(Money other) {
    return new Money(Math.addExact(cents, other.cents));
  }

  public Money minus(Money other) {
    return new Money(Math.subtractExact(cents, other.cents));
  }

  public Money negated() {
    return new Money(Math.negateExact(cents));
  }

  public boolean isPositive() {
    return cents > 0;
  }

  @Override
  public int compareTo(Money other) {
    return Long.compare(cents, other.cents);
  }

  @Override
  public String toString() {
    return toDecimal().toPlainString();
  }
}

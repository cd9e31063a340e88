package schedlab.bank.fraud;

import java.time.Instant;
import schedlab.bank.events.BankEvent;
import schedlab.bank.events.Topic;
import schedlab.bank.money.Money;

/** A transfer was refused because it was suspicious. */
public record FraudAlert(
    long transactionId, long accountId, Money amount, int score, int threshold, Instant at)
    implements BankEvent {

  @Override
  public Topic topic() {
    return Topic.FRAUD_ALERTS;
  }

  @Override
  public String key() {
    return Long.toString(accountId);
  }
}

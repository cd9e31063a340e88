package schedlab.bank.transactions;

import java.time.Instant;
import schedlab.bank.events.BankEvent;
import schedlab.bank.events.Topic;
import schedlab.bank.money.Money;

/** Money has gone from one account to another one. */
record TransactionCompleted(
    long transactionId, long fromAccountId, long toAccountId, Money amount, Instant at)
    implements BankEvent {

  static TransactionCompleted of(Transaction transaction) {
    return new TransactionCompleted(
        transaction.id(),
        transaction.senderId(),
        transaction.receiverId(),
        transaction.amount(),
        transaction.createdAt());
  }

  @Override
  public Topic topic() {
    return Topic.TRANSACTIONS;
  }

  @Override
  public String key() {
    return Long.toString(fromAccountId);
  }
}

package schedlab.bank.transactions;

import java.time.Clock;
import java.time.Instant;
import java.util.concurrent.TimeUnit;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.stereotype.Service;
import org.springframework.transaction.support.TransactionTemplate;
import schedlab.bank.accounts.Account;
import schedlab.bank.accounts.Accounts;
import schedlab.bank.fraud.FraudAlert;
import schedlab.bank.fraud.FraudCheck;

/** Moves money between accounts: as a whole or not at all. */
@Service
class Transfers {

  private final Accounts accounts;
  private final TransactionRepository transactions;
  private final FraudCheck fraud;
  private final ApplicationEventPublisher events;
  private final TransactionTemplate database;
  private final Clock clock;
  private final Retry retry;

  Transfers(
      Accounts accounts,
      TransactionRepository transactions,
      FraudCheck fraud,
      ApplicationEventPublisher events,
      TransactionTemplate database,
      Clock clock,
      TransferRules rules) {
    this.accounts = accounts;
    this.transactions = transactions;
    this.fraud = fraud;
    this.events = events;
    this.database = database;
    this.clock = clock;
    this.retry = new Retry(rules, pause -> TimeUnit.NANOSECONDS.sleep(pause.toNanos()));
  }

  /** The completed transfer; a refusal is recorded too, and told as an exception. */
  Transaction transfer(TransferRequest request) {
    Transaction decided = retry.run(() -> database.execute(status -> decide(request)));
    if (decided.status() == Transaction.Status.REFUSED) {
      throw new FraudRefusalException(decided, fraud.threshold());
    }
    return decided;
  }

  private Transaction decide(TransferRequest request) {
    Pair pair = lock(request);
    int score = fraud.score(pair.sender(), request.amount()).total();
    Instant now = clock.instant();
    return fraud.isSuspicious(score)
        ? refuse(request, score, now)
        : book(request, pair, score, now);
  }

  private record Pair(Account sender, Account receiver) {}

  /**
   * Locks both rows, the lower number first whatever the direction: so two transfers between the
   * same accounts wait for each other in one order and never in a circle.
   */
  private Pair lock(TransferRequest request) {
    long sender = request.fromAccountId();
    long receiver = request.toAccountId();
    if (sender < receiver) {
      Account first = accounts.lock(sender);
      return new Pair(first, accounts.lock(receiver));
    }
    Account first = accounts.lock(receiver);
    return new Pair(accounts.lock(sender), first);
  }

  private Transaction refuse(TransferRequest request, int score, Instant now) {
    Transaction refused =
        transactions.save(new Transaction(request, Transaction.Status.REFUSED, score, now));
    events.publishEvent(
        new FraudAlert(
            refused.id(),
            request.fromAccountId(),
            request.amount(),
            score,
            fraud.threshold(),
            now));
    return refused;
  }

  private Transaction book(TransferRequest request, Pair pair, int score, Instant now) {
    pair.sender().withdraw(request.amount());
    pair.receiver().deposit(request.amount());
    Transaction completed =
        transactions.save(new Transaction(request, Transaction.Status.COMPLETED, score, now));
    accounts.post(completed.id(), pair.sender(), pair.receiver(), request.amount(), now);
    events.publishEvent(TransactionCompleted.of(completed));
    return completed;
  }
}

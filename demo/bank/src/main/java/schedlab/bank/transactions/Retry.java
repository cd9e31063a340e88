package schedlab.bank.transactions;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Supplier;
import org.springframework.dao.ConcurrencyFailureException;

/**
 * Tries again what failed because of others: a lock that was not given in time, or a deadlock. The
 * pauses grow and are drawn at random, so that two that met do not meet again.
 */
final class Retry {

  /** Where the pauses are spent; tests do not spend them. */
  interface Sleeper {
    void sleep(Duration pause) throws InterruptedException;
  }

  private final TransferRules rules;
  private final Sleeper sleeper;

  Retry(TransferRules rules, Sleeper sleeper) {
    this.rules = rules;
    this.sleeper = sleeper;
  }

  <T> T run(Supplier<T> action) {
    for (int attempt = 1; ; attempt++) {
      try {
        return action.get();
      } catch (ConcurrencyFailureException e) {
        if (attempt >= rules.attempts()) {
          throw e;
        }
        pause(attempt, e);
      }
    }
  }

  private void pause(int attempt, ConcurrencyFailureException failure) {
    long longest = rules.longestPause().toNanos();
    long bound = rules.firstPause().toNanos() << Math.min(attempt - 1, 20);
    long pause = ThreadLocalRandom.current().nextLong(Math.min(bound, longest) + 1);
    try {
      sleeper.sleep(Duration.ofNanos(pause));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw failure;
    }
  }
}

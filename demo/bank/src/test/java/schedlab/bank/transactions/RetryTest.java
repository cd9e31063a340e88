package schedlab.bank.transactions;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.springframework.dao.CannotAcquireLockException;

class RetryTest {

  private static final TransferRules RULES =
      new TransferRules(5, Duration.ofMillis(5), Duration.ofMillis(12));

  private final List<Duration> pauses = new ArrayList<>();
  private final Retry retry = new Retry(RULES, pauses::add);
  private final AtomicInteger calls = new AtomicInteger();

  private int failing(int times) {
    if (calls.incrementAndGet() <= times) {
      throw new CannotAcquireLockException("locked");
    }
    return calls.get();
  }

  @Test
  void what_meets_a_lock_is_tried_again() {
    assertThat(retry.run(() -> failing(2))).isEqualTo(3);
    assertThat(pauses).hasSize(2);
  }

  @Test
  void it_gives_up_after_the_last_attempt() {
    assertThatThrownBy(() -> retry.run(() -> failing(99)))
        .isInstanceOf(CannotAcquireLockException.class);
    assertThat(calls).hasValue(5);
  }

  @Test
  void pauses_double_up_to_the_longest() {
    List<Long> bounds = List.of(5L, 10L, 12L, 12L);
    for (int i = 0; i < 200; i++) {
      pauses.clear();
      calls.set(0);
      retry.run(() -> failing(4));
      for (int pause = 0; pause < bounds.size(); pause++) {
        assertThat(pauses.get(pause))
            .isBetween(Duration.ZERO, Duration.ofMillis(bounds.get(pause)));
      }
    }
  }

  @Test
  void other_failures_are_not_tried_again() {
    assertThatThrownBy(
            () ->
                retry.run(
                    () -> {
                      calls.incrementAndGet();
                      throw new IllegalStateException("broken");
                    }))
        .hasMessage("broken");
    assertThat(calls).hasValue(1);
  }
}

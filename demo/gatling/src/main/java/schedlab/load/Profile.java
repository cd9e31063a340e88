package schedlab.load;

import static io.gatling.javaapi.core.CoreDsl.constantUsersPerSec;
import static io.gatling.javaapi.core.CoreDsl.nothingFor;
import static io.gatling.javaapi.core.CoreDsl.rampUsersPerSec;

import io.gatling.javaapi.core.OpenInjectionStep;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import scala.collection.Iterator;
import scala.concurrent.duration.FiniteDuration;

/** When requests are due: Gatling's open model, where nobody waits for an answer to another one. */
record Profile(Settings settings) {

  /** A check that anybody comes at all. */
  void check() {
    if (Arrays.stream(Kind.values()).allMatch(kind -> dueMs(measured(kind)).length == 0)) {
      throw new IllegalArgumentException(
          "no request is due at so low a rate in so short a time: raise bank.steadyRate (or"
              + " bank.rate) or bank.duration (or bank.steady)");
    }
  }

  /** The steps of a scenario's measured part: ramp up, steady, ramp down, after the warm-up. */
  OpenInjectionStep[] measured(Kind kind) {
    double low = kind.lowRate() * settings.rate();
    double high = kind.highRate() * settings.rate();
    List<OpenInjectionStep> steps = new ArrayList<>();
    Duration before = Duration.ofSeconds(settings.warmUp()).plus(delay(kind));
    if (!before.isZero()) {
      steps.add(nothingFor(before));
    }
    if (settings.ramp() > 0) {
      steps.add(rampUsersPerSec(low).to(high).during(settings.ramp()));
    }
    if (settings.steady() > 0) {
      steps.add(constantUsersPerSec(high).during(settings.steady()));
    }
    if (settings.ramp() > 0) {
      steps.add(rampUsersPerSec(high).to(low).during(settings.ramp()));
    }
    return steps.toArray(OpenInjectionStep[]::new);
  }

  /**
   * The steps of a scenario's warm-up: its steady rate. There are none where the scenarios begin
   * one after the other, so slowly that the turn of this one is after the warm-up.
   */
  OpenInjectionStep[] warmUp(Kind kind) {
    double high = kind.highRate() * settings.rate();
    Duration delay = delay(kind);
    Duration length = Duration.ofSeconds(settings.warmUp()).minus(delay);
    if (length.isZero() || length.isNegative()) {
      return new OpenInjectionStep[0];
    }
    if (delay.isZero()) {
      return new OpenInjectionStep[] {constantUsersPerSec(high).during(length)};
    }
    return new OpenInjectionStep[] {
      nothingFor(delay), constantUsersPerSec(high).during(length),
    };
  }

  /** How much later than the first a scenario begins: a request of all comes in each such step. */
  private Duration delay(Kind kind) {
    if (!settings.spread()) {
      return Duration.ZERO;
    }
    return Duration.ofMillis(
        Math.round(1_000 * kind.ordinal() / (Kind.steadyRate() * settings.rate())));
  }

  /**
   * When each user of these steps is due, in milliseconds from the start of the injection. It is
   * asked of Gatling's own steps, whose users start at whole milliseconds that depend on nothing
   * but rates and durations.
   */
  static long[] dueMs(OpenInjectionStep[] steps) {
    Iterator<FiniteDuration> users = scala.collection.Iterator$.MODULE$.<FiniteDuration>empty();
    for (int i = steps.length - 1; i >= 0; i--) {
      users = steps[i].asScala().chain(users);
    }
    List<Long> due = new ArrayList<>();
    while (users.hasNext()) {
      due.add(users.next().toMillis());
    }
    return due.stream().mapToLong(Long::longValue).toArray();
  }

  /** The phase of a moment: it is steady while the rates of all scenarios are. */
  Phase phaseAt(long dueMs) {
    long beginMs = 1_000L * settings.warmUp();
    if (dueMs < beginMs) {
      return Phase.WARM_UP;
    }
    Kind last = Kind.values()[Kind.values().length - 1];
    if (dueMs < beginMs + 1_000L * settings.ramp() + delay(last).toMillis()) {
      return Phase.RAMP_UP;
    }
    long endMs = beginMs + 1_000L * (settings.ramp() + settings.steady());
    return dueMs < endMs ? Phase.STEADY : Phase.RAMP_DOWN;
  }
}

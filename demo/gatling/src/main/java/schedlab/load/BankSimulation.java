package schedlab.load;

import static io.gatling.javaapi.core.CoreDsl.doIfOrElse;
import static io.gatling.javaapi.core.CoreDsl.exec;
import static io.gatling.javaapi.core.CoreDsl.scenario;
import static io.gatling.javaapi.http.HttpDsl.http;

import io.gatling.javaapi.core.ChainBuilder;
import io.gatling.javaapi.core.PopulationBuilder;
import io.gatling.javaapi.core.ScenarioBuilder;
import io.gatling.javaapi.core.Session;
import io.gatling.javaapi.core.Simulation;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** The load of the published run: eight scenarios, each user with one request. */
public class BankSimulation extends Simulation {

  /** Gatling's own code for wrong arguments; with 2 a run would be one of failed assertions. */
  private static final int WRONG_SETTING = 1;

  private final Settings settings = settings();
  private final Profile profile = new Profile(settings);
  private final Requests requests = new Requests(settings.rangeSize());
  private final RequestLog log = new RequestLog();
  private final Reasons reasons = Reasons.listen();
  private final AtomicBoolean measuring = new AtomicBoolean();
  private long[] accounts;

  {
    List<PopulationBuilder> populations = new ArrayList<>();
    for (Kind kind : Kind.values()) {
      long[] warmUpDueMs = Profile.dueMs(profile.warmUp(kind));
      if (warmUpDueMs.length > 0) {
        populations.add(
            users("Warm-up: " + kind.title(), kind, warmUpDueMs, true)
                .injectOpen(profile.warmUp(kind)));
      }
      populations.add(
          users(kind.title(), kind, Profile.dueMs(profile.measured(kind)), false)
              .injectOpen(profile.measured(kind)));
    }
    setUp(populations)
        .protocols(
            http.baseUrl(settings.baseUrl().toString())
                .acceptHeader("application/json")
                // A connection for each user would be one for each request.
                .shareConnections()
                // No request to anybody else.
                .disableWarmUp());
  }

  /** The settings; a wrong one ends the program, by one line in place of a page about classes. */
  private static Settings settings() {
    try {
      Settings settings = Settings.load();
      new Profile(settings).check();
      return settings;
    } catch (IllegalArgumentException e) {
      System.err.println("load: " + e.getMessage());
      System.exit(WRONG_SETTING);
      throw e;
    }
  }

  /** The set-up: its requests do not pass through Gatling and are not counted. */
  @Override
  public void before() {
    try {
      log.create(settings.log());
      accounts = Accounts.of(settings);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void after() {
    try {
      log.append(settings.log());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * A scenario. Its users are numbered as they start, and the k-th to start is the k-th that was
   * due: users of one scenario are all alike, but for what they draw by their number.
   */
  private ScenarioBuilder users(String name, Kind kind, long[] dueMs, boolean warmUp) {
    AtomicInteger started = new AtomicInteger();
    return scenario(name)
        .exec(
            session -> {
              long startNs = System.nanoTime();
              int k = started.getAndIncrement();
              if (!warmUp && measuring.compareAndSet(false, true)) {
                // Whoever watches the run learns when the warm-up is over.
                System.out.printf("load: measuring, monotonic_ns=%d%n", startNs);
              }
              Draw draw = new Draw.Stream(settings, accounts.length, kind, warmUp).at(k);
              return session
                  .set("startNs", startNs)
                  .set("dueMs", dueMs[k])
                  .set("draw", draw)
                  .set("sender", accounts[draw.sender()])
                  .set("receiver", accounts[draw.receiver()]);
            })
        .exec(request(kind, warmUp));
  }

  private ChainBuilder request(Kind kind, boolean warmUp) {
    ChainBuilder ordinary = logged(requests.of(kind), warmUp);
    if (kind != Kind.TRANSFER) {
      return ordinary;
    }
    return doIfOrElse(session -> session.<Draw>get("draw").suspicious())
        .then(logged(requests.suspiciousTransfer(), warmUp))
        .orElse(ordinary);
  }

  /** A warm-up's requests are silent: Gatling counts them nowhere, only our log has them. */
  private ChainBuilder logged(Requests.Request request, boolean warmUp) {
    return exec(warmUp ? request.action().silent() : request.action())
        .exec(
            session -> {
              log(session, request);
              return session;
            });
  }

  private void log(Session session, Requests.Request request) {
    long dueMs = session.getLong("dueMs");
    log.add(
        request.name(),
        profile.phaseAt(dueMs),
        dueMs,
        session.getLong("startNs"),
        request.statusOf(session),
        request.fault(session, reasons.take(session.userId())));
  }
}

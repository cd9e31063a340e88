package schedlab.load;

import static io.gatling.javaapi.core.CoreDsl.StringBody;
import static io.gatling.javaapi.core.CoreDsl.jsonPath;
import static io.gatling.javaapi.http.HttpDsl.http;
import static io.gatling.javaapi.http.HttpDsl.status;

import io.gatling.javaapi.core.CheckBuilder;
import io.gatling.javaapi.core.Session;
import io.gatling.javaapi.http.HttpRequestActionBuilder;
import java.util.function.Function;

/**
 * The requests, and what the right answer to each of them is. Success is what the business would
 * call success: an ordinary transfer is completed, a suspicious one is refused, a fraud check says
 * the truth, primes are counted right. All else failed, whatever its status.
 */
final class Requests {

  static final String SUSPICIOUS_TRANSFER = "Suspicious Transfer";

  /** The attribute of a session that has the status of the answer, where there was one. */
  private static final String STATUS = "status";

  /** The attribute that is there where the body was the right one. */
  private static final String RIGHT = "right";

  private final int rangeSize;
  private final int primes;

  Requests(int rangeSize) {
    this.rangeSize = rangeSize;
    primes = primesUpTo(rangeSize);
  }

  /** A request and the status that its right answer has. */
  record Request(String name, int status, HttpRequestActionBuilder action) {

    /** The status of the answer; 0 where there was none. */
    int statusOf(Session session) {
      return session.contains(STATUS) ? session.getInt(STATUS) : 0;
    }

    /**
     * Why this answer is not the right one; empty where it is. Not asked of Gatling's own mark of
     * failed sessions, since silent requests do not set it.
     *
     * @param unanswered why there is no answer; empty where there is one, or nobody knows
     */
    String fault(Session session, String unanswered) {
      int found = statusOf(session);
      if (found == 0) {
        return unanswered.isEmpty() ? "no answer" : "no answer: " + unanswered;
      }
      if (found != status) {
        return "status %d instead of %d".formatted(found, status);
      }
      return session.contains(RIGHT) ? "" : "wrong answer";
    }
  }

  Request of(Kind kind) {
    return switch (kind) {
      case CREATE_ACCOUNT -> createAccount();
      case TRANSFER -> transfer();
      case RISK_ANALYSIS ->
          read(kind, "risk-analysis", jsonPath("$.valueAtRisk").exists().saveAs(RIGHT));
      case PORTFOLIO_OPTIMIZATION ->
          read(kind, "portfolio-optimization", jsonPath("$.weights[0]").exists().saveAs(RIGHT));
      case FRAUD_CHECK -> fraudCheck();
      case PRIME_SEARCH -> primeSearch();
      case GET_BALANCE -> read(kind, "balance", jsonPath("$.balance").exists().saveAs(RIGHT));
      case TRANSACTION_HISTORY ->
          // The opening of an account is in its history, so there is always one.
          read(kind, "transactions", jsonPath("$.transactions[0].amount").exists().saveAs(RIGHT));
    };
  }

  private static Request createAccount() {
    return post(
        Kind.CREATE_ACCOUNT.title(),
        201,
        "/api/accounts",
        session ->
            "{\"owner\":\"new customer\",\"initialBalance\":%s}".formatted(draw(session).amount()),
        jsonPath("$.id").exists().saveAs(RIGHT));
  }

  private static Request transfer() {
    return post(
        Kind.TRANSFER.title(),
        201,
        "/api/transactions/transfer",
        Requests::transferBody,
        jsonPath("$.status").is("COMPLETED").saveAs(RIGHT));
  }

  Request suspiciousTransfer() {
    return post(
        SUSPICIOUS_TRANSFER,
        422,
        "/api/transactions/transfer",
        Requests::transferBody,
        jsonPath("$.type").is("urn:bank:fraud-refused").saveAs(RIGHT));
  }

  private static String transferBody(Session session) {
    return "{\"fromAccountId\":%d,\"toAccountId\":%d,\"amount\":%s}"
        .formatted(session.getLong("sender"), session.getLong("receiver"), draw(session).amount());
  }

  private static Request fraudCheck() {
    HttpRequestActionBuilder action =
        http(Kind.FRAUD_CHECK.title())
            .get("/api/accounts/#{sender}/fraud-check")
            .queryParam("amount", session -> draw(session).amount())
            .check(status().saveAs(STATUS), status().is(200))
            .check(
                jsonPath("$.suspicious")
                    .is(session -> Boolean.toString(draw(session).suspicious()))
                    .saveAs(RIGHT));
    return new Request(Kind.FRAUD_CHECK.title(), 200, action);
  }

  private Request primeSearch() {
    return read(
        Kind.PRIME_SEARCH,
        "distributed-prime-search?rangeSize=" + rangeSize,
        jsonPath("$.primes").is(Integer.toString(primes)).saveAs(RIGHT));
  }

  private static Request read(Kind kind, String path, CheckBuilder answer) {
    HttpRequestActionBuilder action =
        http(kind.title())
            .get("/api/accounts/#{sender}/" + path)
            .check(status().saveAs(STATUS), status().is(200), answer);
    return new Request(kind.title(), 200, action);
  }

  private static Request post(
      String name, int expected, String path, Function<Session, String> body, CheckBuilder answer) {
    HttpRequestActionBuilder action =
        http(name)
            .post(path)
            .body(StringBody(body))
            .asJson()
            .check(status().saveAs(STATUS), status().is(expected), answer);
    return new Request(name, expected, action);
  }

  private static Draw draw(Session session) {
    return session.get("draw");
  }

  /** The number of primes up to there, by sieving: not the way of the service. */
  static int primesUpTo(int last) {
    boolean[] composite = new boolean[last + 1];
    int count = 0;
    for (int n = 2; n <= last; n++) {
      if (!composite[n]) {
        count++;
        for (long multiple = (long) n * n; multiple <= last; multiple += n) {
          composite[(int) multiple] = true;
        }
      }
    }
    return count;
  }
}

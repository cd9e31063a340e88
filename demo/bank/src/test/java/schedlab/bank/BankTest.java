package schedlab.bank;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.core.env.Environment;
import schedlab.bank.Api.Answer;

/** The service without Kafka, over HTTP. */
@SpringBootTest(
    webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
    properties = {"kafka.enabled=false", "spring.datasource.url=jdbc:h2:mem:bank-test"})
class BankTest {

  @LocalServerPort int port;
  private Api api;

  @BeforeEach
  void connect() {
    api = new Api(port);
  }

  private static void assertProblem(Answer answer, int status) {
    assertThat(answer.status()).as(String.valueOf(answer.body())).isEqualTo(status);
    assertThat(answer.contentType()).isEqualTo("application/problem+json");
    assertThat(answer.body().get("status").asInt()).isEqualTo(status);
    assertThat(answer.body().get("title").asText()).isNotBlank();
    assertThat(answer.body().get("detail").asText()).isNotBlank();
  }

  @Test
  void an_account_that_was_opened_can_be_read() {
    Answer opened = api.post("/api/accounts", "{\"owner\":\"Ann\",\"initialBalance\":0.10}");
    assertThat(opened.status()).isEqualTo(201);
    String place = opened.raw().headers().firstValue("Location").orElseThrow();
    Answer read = api.get(place);
    assertThat(read.status()).isEqualTo(200);
    assertThat(read.body()).isEqualTo(opened.body());
    assertThat(read.money("balance")).isEqualTo("0.10");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "/balance",
        "/transactions",
        "/risk-analysis",
        "/portfolio-optimization",
        "/fraud-check?amount=10",
        "/distributed-prime-search?rangeSize=10"
      })
  void an_unknown_account_is_not_found(String path) {
    Answer answer = api.get("/api/accounts/4711" + path);
    assertProblem(answer, 404);
    assertThat(answer.body().get("type").asText()).isEqualTo("urn:bank:unknown-account");
    assertThat(answer.body().get("accountId").asLong()).isEqualTo(4711);
  }

  @Test
  void a_decimal_number_that_no_account_has_is_not_found() {
    for (String number : new String[] {"0", "-1", "9223372036854775807"}) {
      assertProblem(api.get("/api/accounts/" + number), 404);
    }
  }

  @Test
  void a_transfer_from_or_to_an_unknown_account_is_not_found_and_moves_nothing() {
    long account = api.open("100.00");
    assertProblem(api.transfer(account, 4711, "10"), 404);
    assertProblem(api.transfer(4711, account, "10"), 404);
    assertThat(api.balance(account)).isEqualTo("100.00");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '^',
      value = {
        "{\"initialBalance\":1} | owner must not be blank",
        "{\"owner\":\" \",\"initialBalance\":1} | owner must not be blank",
        "{\"owner\":\"Ann\"} | initialBalance must not be null",
        "{\"owner\":\"Ann\",\"initialBalance\":-1} | initialBalance must not be negative",
        "{\"owner\":\"Ann\",\"initialBalance\":0.001} | an amount has at most two decimals",
        "{\"owner\":\"Ann\",\"initialBalance\":1e99999} | an amount is at most",
        "{\"owner\":\"Ann\",\"initialBalance\":\"much\"} | The body cannot be read",
        "{\"owner\":5,\"initialBalance\":1} | The body cannot be read",
        "{\"owner\":1.5,\"initialBalance\":1} | The body cannot be read",
        "{\"owner\":true,\"initialBalance\":1} | The body cannot be read",
        "{\"owner\":\"Ann\", | The body cannot be read",
        "{\"owner\":\"Ann\",\"initialBalance\":1} more | The body cannot be read",
        "{\"owner\":\"Ann\",\"initialBalance\":1}{} | The body cannot be read",
        "[] | The body cannot be read",
      })
  void a_wrong_account_is_a_bad_request(String body, String detail) {
    Answer answer = api.post("/api/accounts", body);
    assertProblem(answer, 400);
    assertThat(answer.body().get("detail").asText()).contains(detail);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '^',
      value = {
        "{\"fromAccountId\":1,\"toAccountId\":2} | amount must not be null",
        "{\"fromAccountId\":1,\"amount\":2} | toAccountId must not be null",
        "{\"toAccountId\":1,\"amount\":2} | fromAccountId must not be null",
        "{\"fromAccountId\":1,\"toAccountId\":1,\"amount\":2} | must differ",
        "{\"fromAccountId\":1,\"toAccountId\":2,\"amount\":0} | amount must be positive",
        "{\"fromAccountId\":1,\"toAccountId\":2,\"amount\":-5} | amount must be positive",
        "{\"fromAccountId\":1,\"toAccountId\":2,\"amount\":0.005} | at most two decimals",
        "{\"fromAccountId\":\"x\",\"toAccountId\":2,\"amount\":5} | The body cannot be read",
        "{\"fromAccountId\":1.7,\"toAccountId\":2,\"amount\":5} | The body cannot be read",
        "{\"fromAccountId\":\"1\",\"toAccountId\":2,\"amount\":5} | The body cannot be read",
        "{\"fromAccountId\":true,\"toAccountId\":2,\"amount\":5} | The body cannot be read",
        "{\"fromAccountId\":0x1,\"toAccountId\":2,\"amount\":5} | The body cannot be read",
        "{\"fromAccountId\":01,\"toAccountId\":2,\"amount\":5} | The body cannot be read",
        "{\"fromAccountId\":\"0x1\",\"toAccountId\":2,\"amount\":5} | The body cannot be read",
        "{\"fromAccountId\":1,\"toAccountId\":99999999999999999999,\"amount\":5} | cannot be read",
      })
  void a_wrong_transfer_is_a_bad_request(String body, String detail) {
    Answer answer = api.post("/api/transactions/transfer", body);
    assertProblem(answer, 400);
    assertThat(answer.body().get("detail").asText()).contains(detail);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "/api/accounts/ann | id cannot be 'ann'",
        "/api/accounts/99999999999999999999 | id cannot be",
        "/api/accounts/0x1 | id cannot be '0x1'",
        "/api/accounts/0X1/balance | id cannot be '0X1'",
        "/api/accounts/-0x1/transactions | id cannot be '-0x1'",
        "/api/accounts/%231/risk-analysis | id cannot be '#1'",
        "/api/accounts/01/portfolio-optimization | id cannot be '01'",
        "/api/accounts/+1/fraud-check?amount=10 | id cannot be '+1'",
        "/api/accounts/%201 | id cannot be ' 1'",
        "/api/accounts/1.0 | id cannot be '1.0'",
        "/api/accounts/%EF%BC%91 | id cannot be",
        "/api/accounts/1/transactions?limit=0x10 | limit cannot be '0x10'",
        "/api/accounts/1/transactions?limit=010 | limit cannot be '010'",
        "/api/accounts/1/transactions?limit=0 | limit must be greater than or equal to 1",
        "/api/accounts/1/transactions?limit=101 | limit must be less than or equal to 100",
        "/api/accounts/1/fraud-check | Required parameter 'amount' is not present",
        "/api/accounts/1/fraud-check?amount=0 | amount must be positive",
        "/api/accounts/1/fraud-check?amount=1.234 | an amount has at most two decimals",
        "/api/accounts/1/fraud-check?amount=much | 'much' is no amount",
        "/api/accounts/1/distributed-prime-search?rangeSize=0 | must be from 1 to 10000000, not 0",
        "/api/accounts/1/distributed-prime-search?rangeSize=10000001 | not 10000001",
        "/api/accounts/1/distributed-prime-search?rangeSize=ten | rangeSize cannot be 'ten'",
        "/api/accounts/1/distributed-prime-search?rangeSize=0x10 | rangeSize cannot be '0x10'",
      })
  void a_wrong_question_is_a_bad_request(String path, String detail) {
    Answer answer = api.get(path);
    assertProblem(answer, 400);
    assertThat(answer.body().get("detail").asText()).contains(detail);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "GET /api/accounts/%zz HTTP/1.1",
        "GET /api/accounts/{1} HTTP/1.1",
        "GET /api/accounts/1 2 HTTP/1.1",
        "GET /api/accounts/%00 HTTP/1.1",
      })
  void a_request_that_is_none_is_a_bad_request(String line) throws IOException {
    Answer answer = api.line(line);
    assertProblem(answer, 400);
    assertThat(answer.body().get("type").asText()).isEqualTo("urn:bank:invalid-request");
  }

  @Test
  void an_unknown_path_and_a_wrong_method_are_problems_too() {
    assertProblem(api.get("/api/loans"), 404);
    assertProblem(api.get("/api/transactions/transfer"), 405);
  }

  @Test
  void a_transfer_moves_the_exact_amount_and_stands_in_both_histories() {
    long sender = api.open("100.00");
    long receiver = api.open("0.01");
    Answer transfer = api.transfer(sender, receiver, "33.33");
    assertThat(transfer.status()).isEqualTo(201);
    assertThat(transfer.body().get("status").asText()).isEqualTo("COMPLETED");
    assertThat(api.balance(sender)).isEqualTo("66.67");
    assertThat(api.balance(receiver)).isEqualTo("33.34");
    assertNewest(sender, transfer, "-33.33", "66.67");
    assertNewest(receiver, transfer, "33.33", "33.34");
  }

  private void assertNewest(long account, Answer transfer, String amount, String balance) {
    JsonNode line =
        api.get("/api/accounts/%d/transactions".formatted(account))
            .body()
            .get("transactions")
            .get(0);
    assertThat(line.get("transactionId")).isEqualTo(transfer.body().get("transactionId"));
    assertThat(line.get("amount").decimalValue()).isEqualTo(amount);
    assertThat(line.get("balance").decimalValue()).isEqualTo(balance);
    assertThat(line.get("createdAt")).isEqualTo(transfer.body().get("createdAt"));
  }

  @Test
  void a_history_has_the_newest_first_and_the_opening_last() {
    long sender = api.open("100.00");
    long receiver = api.open("0");
    for (int i = 1; i <= 25; i++) {
      assertThat(api.transfer(sender, receiver, Integer.toString(i % 3 + 1)).status())
          .isEqualTo(201);
    }
    String path = "/api/accounts/%d/transactions".formatted(sender);
    assertThat(api.get(path).body().get("transactions")).hasSize(20);
    JsonNode all = api.get(path + "?limit=100").body().get("transactions");
    assertThat(all).hasSize(26);
    assertThat(all.get(25).get("amount").decimalValue()).isEqualTo("100.00");
    assertThat(all.get(25).get("transactionId").isNull()).isTrue();
    assertThat(all.get(0).get("balance").decimalValue()).isEqualTo(api.balance(sender));
  }

  @Test
  void a_suspicious_transfer_is_refused_and_moves_nothing() {
    long sender = api.open("1000000");
    long receiver = api.open("0");
    Answer refusal = api.transfer(sender, receiver, "20000.00");
    assertProblem(refusal, 422);
    assertThat(refusal.body().get("type").asText()).isEqualTo("urn:bank:fraud-refused");
    assertThat(refusal.body().get("score").asInt()).isEqualTo(50);
    assertThat(refusal.body().get("threshold").asInt()).isEqualTo(50);
    assertThat(api.balance(sender)).isEqualTo("1000000.00");
    assertThat(api.balance(receiver)).isEqualTo("0.00");
  }

  @Test
  void more_than_there_is_cannot_be_sent() {
    long sender = api.open("10.00");
    long receiver = api.open("0");
    Answer refusal = api.transfer(sender, receiver, "10.01");
    assertProblem(refusal, 409);
    assertThat(refusal.body().get("type").asText()).isEqualTo("urn:bank:insufficient-funds");
    assertThat(api.balance(sender)).isEqualTo("10.00");
    assertThat(api.transfer(sender, receiver, "10.00").status()).isEqualTo(201);
    assertThat(api.balance(sender)).isEqualTo("0.00");
  }

  @Test
  void a_fraud_check_says_what_a_transfer_would_meet() {
    long account = api.open("1000000");
    String path = "/api/accounts/%d/fraud-check?amount=".formatted(account);
    assertThat(api.get(path + "500").body().get("suspicious").asBoolean()).isFalse();
    assertThat(api.get(path + "20000").body().get("suspicious").asBoolean()).isTrue();
  }

  @Test
  void transfers_in_quick_succession_raise_the_score() {
    long sender = api.open("1000000");
    long receiver = api.open("0");
    int first = api.transfer(sender, receiver, "1").body().get("fraudScore").asInt();
    for (int i = 0; i < 6; i++) {
      api.transfer(sender, receiver, "1");
    }
    int eighth = api.transfer(sender, receiver, "1").body().get("fraudScore").asInt();
    assertThat(first).isZero();
    assertThat(eighth).isEqualTo(4);
  }

  @Test
  void a_risk_analysis_is_the_same_each_time_and_goes_with_the_balance() {
    long account = api.open("1000");
    long receiver = api.open("0");
    String path = "/api/accounts/%d/risk-analysis".formatted(account);
    JsonNode before = api.get(path).body();
    assertThat(api.get(path).body()).isEqualTo(before);
    api.transfer(account, receiver, "500");
    JsonNode after = api.get(path).body();
    assertThat(after.get("meanReturn")).isEqualTo(before.get("meanReturn"));
    assertThat(after.get("valueAtRisk").decimalValue().movePointRight(2).longValueExact() * 2)
        .isBetween(
            before.get("valueAtRisk").decimalValue().movePointRight(2).longValueExact() - 1,
            before.get("valueAtRisk").decimalValue().movePointRight(2).longValueExact() + 1);
  }

  @Test
  void a_portfolio_says_how_much_work_it_was() {
    long account = api.open("0");
    JsonNode portfolio =
        api.get("/api/accounts/%d/portfolio-optimization".formatted(account)).body();
    assertThat(portfolio.get("iterations").asInt()).isEqualTo(1000);
    assertThat(portfolio.get("weights")).hasSize(30);
  }

  @Test
  void a_prime_search_finds_all_of_them() {
    long account = api.open("0");
    String path = "/api/accounts/%d/distributed-prime-search?rangeSize=100000".formatted(account);
    assertThat(api.get(path).body().get("primes").asInt()).isEqualTo(9592);
  }

  @Test
  void health_says_that_it_is_degraded_without_kafka() {
    Answer health = api.get("/actuator/health");
    assertThat(health.status()).isEqualTo(200);
    assertThat(health.body().get("status").asText()).isEqualTo("DEGRADED");
    JsonNode components = health.body().get("components");
    assertThat(components.get("db").get("status").asText()).isEqualTo("UP");
    assertThat(components.get("events").get("description").asText())
        .contains("kafka.enabled=false");
  }

  @Test
  void without_kafka_events_are_counted_as_dropped() {
    long sender = api.open("1000000");
    long receiver = api.open("0");
    long before = api.events("transactions").get("dropped");
    long alertsBefore = api.events("fraud-alerts").get("dropped");
    api.transfer(sender, receiver, "1");
    api.transfer(sender, receiver, "30000");
    assertThat(api.events("transactions")).containsEntry("dropped", before + 1);
    assertThat(api.events("fraud-alerts")).containsEntry("dropped", alertsBefore + 1);
    assertThat(api.events("transactions")).containsEntry("published", 0L);
  }

  @Test
  void the_running_service_has_pools_of_the_size_of_the_machine(
      @Autowired Environment environment, @Autowired DataSource database) throws Exception {
    PoolSizes sizes = PoolSizes.of(Runtime.getRuntime().availableProcessors());
    assertThat(environment.getProperty("server.tomcat.threads.max", int.class))
        .isEqualTo(sizes.requests());
    assertThat(database.unwrap(HikariDataSource.class).getMaximumPoolSize())
        .isEqualTo(sizes.connections());
  }
}

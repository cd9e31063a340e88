package schedlab.bank.transactions;

import static org.assertj.core.api.Assertions.assertThat;

import java.sql.Connection;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import schedlab.bank.Api;
import schedlab.bank.Api.Answer;

/** Transfers of an account that somebody else has locked. */
@SpringBootTest(
    webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
    properties = {
      "kafka.enabled=false",
      "spring.datasource.url=jdbc:h2:mem:locked-test;LOCK_TIMEOUT=200",
      "bank.transfers.attempts=3"
    })
class LockedAccountTest {

  @LocalServerPort int port;
  @Autowired DataSource database;
  private Api api;

  @BeforeEach
  void connect() {
    api = new Api(port);
  }

  @Test
  void a_transfer_that_never_gets_its_lock_is_told_to_come_again() throws Exception {
    long one = api.open("10.00");
    long other = api.open("10.00");
    try (Connection holder = database.getConnection()) {
      lock(holder, other);
      Answer answer = api.transfer(one, other, "1");
      assertThat(answer.status()).isEqualTo(503);
      assertThat(answer.contentType()).isEqualTo("application/problem+json");
      assertThat(answer.raw().headers().firstValue("Retry-After")).contains("1");
      holder.rollback();
    }
    assertThat(api.balance(one)).isEqualTo("10.00");
    assertThat(api.transfer(one, other, "1").status()).isEqualTo(201);
  }

  @Test
  void a_transfer_waits_for_a_lock_and_then_sees_the_newest_balance() throws Exception {
    long one = api.open("10.00");
    long other = api.open("0.00");
    ExecutorService client = Executors.newSingleThreadExecutor();
    try (Connection holder = database.getConnection()) {
      lock(holder, one);
      Future<Answer> waiting = client.submit(() -> api.transfer(one, other, "8"));
      try (var statement = holder.createStatement()) {
        statement.execute("update accounts set balance_cents = 500 where id = " + one);
      }
      holder.commit();
      assertThat(waiting.get().status()).isEqualTo(409);
    } finally {
      client.shutdownNow();
    }
  }

  private static void lock(Connection holder, long account) throws Exception {
    holder.setAutoCommit(false);
    try (var statement = holder.createStatement()) {
      statement.execute("select * from accounts where id = %d for update".formatted(account));
    }
  }
}

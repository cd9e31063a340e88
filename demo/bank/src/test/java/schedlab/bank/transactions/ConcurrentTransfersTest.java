package schedlab.bank.transactions;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.jdbc.core.JdbcTemplate;
import schedlab.bank.Api;
import schedlab.bank.Api.Answer;
import schedlab.bank.accounts.AccountRepository;

/** Many transfers at once, over HTTP, as they meet the service. */
@SpringBootTest(
    webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
    properties = {
      "kafka.enabled=false",
      // A busy machine must not turn a wait into a refusal.
      "spring.datasource.url=jdbc:h2:mem:concurrent-test;LOCK_TIMEOUT=60000",
      // Nor may trying again hide that two transfers wait for each other in a circle.
      "bank.transfers.attempts=1",
      // More requests at once than the CPUs of a small machine would get.
      "server.tomcat.threads.max=32",
      "spring.datasource.hikari.maximum-pool-size=16"
    })
class ConcurrentTransfersTest {

  private static final int CLIENTS = 32;

  @LocalServerPort int port;
  @Autowired DataSource database;
  @Autowired AccountRepository accounts;
  @Autowired TransactionRepository transactions;
  private Api api;

  @BeforeEach
  void connect() {
    api = new Api(port);
  }

  private static List<Integer> statuses(List<Callable<Answer>> requests) throws Exception {
    ExecutorService clients = Executors.newFixedThreadPool(CLIENTS);
    try {
      List<Integer> statuses = new ArrayList<>();
      for (Future<Answer> answer : clients.invokeAll(requests)) {
        statuses.add(answer.get().status());
      }
      return statuses;
    } finally {
      clients.shutdownNow();
    }
  }

  private long query(String sql) {
    return new JdbcTemplate(database).queryForObject(sql, Long.class);
  }

  @Test
  void a_thousand_transfers_at_once_conserve_the_sum() throws Exception {
    List<Long> numbers = IntStream.range(0, 10).mapToObj(i -> api.open("100.00")).toList();
    long total = accounts.totalCents();
    long before = transactions.countByStatus(Transaction.Status.COMPLETED);
    SplittableRandom random = new SplittableRandom(1);
    List<Callable<Answer>> requests = new ArrayList<>();
    for (int i = 0; i < 1_000; i++) {
      int from = random.nextInt(10);
      int to = (from + 1 + random.nextInt(9)) % 10;
      String amount = new BigDecimal(random.nextInt(1, 6_000)).movePointLeft(2).toString();
      requests.add(() -> api.transfer(numbers.get(from), numbers.get(to), amount));
    }
    List<Integer> statuses = statuses(requests);

    // Accounts of 100.00 that send up to 60.00 run dry now and then: both must have happened.
    assertThat(statuses).containsOnly(201, 409).contains(201, 409);
    long completed = statuses.stream().filter(status -> status == 201).count();
    assertThat(transactions.countByStatus(Transaction.Status.COMPLETED) - before)
        .isEqualTo(completed);
    assertThat(accounts.totalCents()).isEqualTo(total);
    assertThat(query("select sum(amount_cents) from postings where transaction_id is not null"))
        .isZero();
    assertThat(
            query(
                """
                select count(*) from accounts a where balance_cents !=
                  (select sum(amount_cents) from postings p where p.account_id = a.id)
                """))
        .isZero();
    assertThat(
            query(
                """
                select count(*) from accounts a where balance_cents !=
                  (select balance_cents from postings p where p.account_id = a.id
                   order by p.id desc limit 1)
                """))
        .as("the last posting of an account has its balance")
        .isZero();
  }

  @Test
  void transfers_in_both_directions_between_two_accounts_do_not_block_each_other()
      throws Exception {
    long one = api.open("1000.00");
    long other = api.open("1000.00");
    List<Callable<Answer>> requests = new ArrayList<>();
    for (int i = 0; i < 50; i++) {
      requests.add(() -> api.transfer(one, other, "0.01"));
      requests.add(() -> api.transfer(other, one, "0.01"));
    }
    assertThat(statuses(requests)).containsOnly(201);
    assertThat(api.balance(one)).isEqualTo("1000.00");
    assertThat(api.balance(other)).isEqualTo("1000.00");
  }
}

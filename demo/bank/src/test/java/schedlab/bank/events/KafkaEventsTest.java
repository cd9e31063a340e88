package schedlab.bank.events;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;
import org.springframework.transaction.event.TransactionPhase;
import org.springframework.transaction.event.TransactionalEventListener;
import schedlab.bank.Api;
import schedlab.bank.Api.Answer;

/** Events through a real broker. The last test ends it. */
@SpringBootTest(
    webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT,
    properties = {
      "spring.datasource.url=jdbc:h2:mem:kafka-test",
      "spring.kafka.producer.properties.request.timeout.ms=500",
      "spring.kafka.producer.properties.delivery.timeout.ms=1000"
    })
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
@Timeout(value = 2, unit = TimeUnit.MINUTES)
class KafkaEventsTest {

  /** Ends every transaction of 6.66 after all its work, just before the commit. */
  @TestConfiguration
  static class Sabotage {
    @TransactionalEventListener(phase = TransactionPhase.BEFORE_COMMIT)
    void end(BankEvent event) {
      if (event.toString().contains("6.66")) {
        throw new IllegalStateException("the transaction was ended by the test");
      }
    }
  }

  private static BrokerProcess broker;

  @LocalServerPort int port;
  private Api api;

  @DynamicPropertySource
  static void startBroker(DynamicPropertyRegistry registry) {
    broker = new BrokerProcess();
    registry.add("spring.kafka.bootstrap-servers", broker::address);
  }

  @AfterAll
  static void stopBroker() {
    broker.close();
  }

  @BeforeEach
  void connect() {
    api = new Api(port);
  }

  private static void await(BooleanSupplier condition) throws InterruptedException {
    while (!condition.getAsBoolean()) {
      Thread.sleep(50);
    }
  }

  private void awaitHealth(String status) throws InterruptedException {
    await(() -> health().body().get("status").asText().equals(status));
  }

  private Answer health() {
    return api.get("/actuator/health");
  }

  /** All events of a topic, read by a client that is not the service. */
  private static List<JsonNode> events(String topic) throws Exception {
    Map<String, Object> settings = Map.of("bootstrap.servers", broker.address());
    var strings = new StringDeserializer();
    List<JsonNode> events = new ArrayList<>();
    try (var consumer = new KafkaConsumer<>(settings, strings, strings)) {
      List<TopicPartition> partitions =
          consumer.partitionsFor(topic).stream()
              .map(p -> new TopicPartition(topic, p.partition()))
              .toList();
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      long count = consumer.endOffsets(partitions).values().stream().mapToLong(n -> n).sum();
      while (events.size() < count) {
        for (ConsumerRecord<String, String> found : consumer.poll(Duration.ofSeconds(1))) {
          events.add(new ObjectMapper().readTree(found.value()));
        }
      }
    }
    return events;
  }

  @Test
  @Order(1)
  void with_a_broker_health_is_up_and_tells_the_partitions() throws Exception {
    awaitHealth("UP");
    JsonNode details = health().body().get("components").get("events").get("details");
    assertThat(details.get("transactions").asInt()).isEqualTo(4);
    assertThat(details.get("fraud-alerts").asInt()).isEqualTo(1);
  }

  @Test
  @Order(2)
  void a_completed_transfer_is_an_event_that_the_service_reads_too() throws Exception {
    long sender = api.open("100.00");
    long receiver = api.open("0");
    long read = api.events("transactions").get("consumed");
    Answer transfer = api.transfer(sender, receiver, "12.34");

    await(() -> api.events("transactions").get("consumed") == read + 1);
    assertThat(api.get("/api/transactions/turnover").money("turnover")).isEqualTo("12.34");
    List<JsonNode> events = events("transactions");
    assertThat(events).hasSize(1);
    assertThat(events.get(0).get("transactionId")).isEqualTo(transfer.body().get("transactionId"));
    assertThat(events.get(0).get("amount").asText()).isEqualTo("12.34");
    assertThat(events.get(0).get("fromAccountId").asLong()).isEqualTo(sender);
    assertThat(events.get(0).get("toAccountId").asLong()).isEqualTo(receiver);
    assertThat(api.events("transactions")).containsEntry("published", 1L);
  }

  @Test
  @Order(3)
  void a_refusal_is_an_alert_and_no_transfer() throws Exception {
    long sender = api.open("1000000");
    long receiver = api.open("0");
    int transfers = events("transactions").size();
    Answer refusal = api.transfer(sender, receiver, "24000");

    await(() -> api.events("fraud-alerts").get("consumed") == 1);
    assertThat(events("transactions")).hasSize(transfers);
    List<JsonNode> alerts = events("fraud-alerts");
    assertThat(alerts).hasSize(1);
    assertThat(alerts.get(0).get("score")).isEqualTo(refusal.body().get("score"));
    assertThat(api.get("/api/fraud-alerts").body().get(0).get("accountId").asLong())
        .isEqualTo(sender);
  }

  @Test
  @Order(4)
  void what_was_not_committed_is_no_event() throws Exception {
    long sender = api.open("9.00");
    long receiver = api.open("0");
    int transfers = events("transactions").size();
    assertThat(api.transfer(sender, receiver, "6.66").status()).isEqualTo(500);
    assertThat(api.balance(sender)).isEqualTo("9.00");
    assertThat(api.transfer(sender, receiver, "1").status()).isEqualTo(201);
    await(() -> api.events("transactions").get("published") > transfers);
    assertThat(events("transactions")).hasSize(transfers + 1);
  }

  @Test
  @Order(5)
  void without_its_broker_the_service_still_transfers_and_says_that_it_is_down() throws Exception {
    long sender = api.open("100.00");
    long receiver = api.open("0");
    broker.close();
    assertThat(api.transfer(sender, receiver, "10").status()).isEqualTo(201);
    assertThat(api.balance(receiver)).isEqualTo("10.00");
    await(() -> api.events("transactions").get("failed") == 1);
    assertThat(health().status()).isEqualTo(503);
    assertThat(health().body().get("components").get("events").get("status").asText())
        .isEqualTo("DOWN");
  }
}

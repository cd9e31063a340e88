package schedlab.bank.transactions;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.concurrent.atomic.AtomicLong;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.stereotype.Component;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import schedlab.bank.events.EventCounts;
import schedlab.bank.events.Topic;
import schedlab.bank.money.Money;

/** Money that the bank has moved since it started, as heard through Kafka. */
@Component
class Turnover {

  private final AtomicLong cents = new AtomicLong();

  void add(TransactionCompleted event) {
    cents.addAndGet(event.amount().cents());
  }

  Money sum() {
    return new Money(cents.get());
  }

  /** Hears of transfers through Kafka. */
  @Component
  @ConditionalOnProperty("kafka.enabled")
  static class Reader {
    private final Turnover turnover;
    private final ObjectMapper json;
    private final EventCounts counts;

    Reader(Turnover turnover, ObjectMapper json, EventCounts counts) {
      this.turnover = turnover;
      this.json = json;
      this.counts = counts;
    }

    @KafkaListener(
        topics = Topic.TRANSACTIONS_NAME,
        groupId = "turnover",
        concurrency = "${bank.events.consumers}")
    void read(String text) throws JsonProcessingException {
      turnover.add(json.readValue(text, TransactionCompleted.class));
      counts.countConsumed(Topic.TRANSACTIONS);
    }
  }

  @RestController
  static class Controller {
    private final Turnover turnover;

    Controller(Turnover turnover) {
      this.turnover = turnover;
    }

    record TurnoverView(Money turnover) {}

    @GetMapping("/api/transactions/turnover")
    TurnoverView turnover() {
      return new TurnoverView(turnover.sum());
    }
  }
}

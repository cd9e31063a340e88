package schedlab.bank.fraud;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.stereotype.Component;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import schedlab.bank.events.EventCounts;
import schedlab.bank.events.Topic;

/** Keeps the newest alerts for the people who look into them. */
@Component
class FraudDesk {

  private static final int KEPT = 100;

  private final Deque<FraudAlert> newest = new ArrayDeque<>();

  synchronized void add(FraudAlert alert) {
    newest.addFirst(alert);
    if (newest.size() > KEPT) {
      newest.removeLast();
    }
  }

  synchronized List<FraudAlert> newest() {
    return List.copyOf(newest);
  }

  /** Hears of alerts through Kafka. */
  @Component
  @ConditionalOnProperty("kafka.enabled")
  static class Reader {
    private final FraudDesk desk;
    private final ObjectMapper json;
    private final EventCounts counts;

    Reader(FraudDesk desk, ObjectMapper json, EventCounts counts) {
      this.desk = desk;
      this.json = json;
      this.counts = counts;
    }

    @KafkaListener(topics = Topic.FRAUD_ALERTS_NAME, groupId = "fraud-desk")
    void read(String text) throws JsonProcessingException {
      desk.add(json.readValue(text, FraudAlert.class));
      counts.countConsumed(Topic.FRAUD_ALERTS);
    }
  }

  @RestController
  static class Controller {
    private final FraudDesk desk;

    Controller(FraudDesk desk) {
      this.desk = desk;
    }

    @GetMapping("/api/fraud-alerts")
    List<FraudAlert> alerts() {
      return desk.newest();
    }
  }
}

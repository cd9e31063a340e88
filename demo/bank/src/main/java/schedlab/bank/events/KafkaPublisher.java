package schedlab.bank.events;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.kafka.KafkaException;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.stereotype.Component;
import org.springframework.transaction.event.TransactionalEventListener;
import schedlab.bank.events.EventCounts.Fate;

/**
 * Sends events to Kafka once what they tell is committed. A transfer does not wait for the broker
 * and does not fail with it; an event that the broker does not take is counted and logged.
 */
@Component
@ConditionalOnProperty("kafka.enabled")
class KafkaPublisher {

  private static final Logger LOG = LoggerFactory.getLogger(KafkaPublisher.class);

  private final KafkaTemplate<String, String> kafka;
  private final ObjectMapper json;
  private final EventCounts counts;

  KafkaPublisher(KafkaTemplate<String, String> kafka, ObjectMapper json, EventCounts counts) {
    this.kafka = kafka;
    this.json = json;
    this.counts = counts;
  }

  @TransactionalEventListener
  void publish(BankEvent event) throws JsonProcessingException {
    String text = json.writeValueAsString(event);
    try {
      kafka
          .send(event.topic().topicName(), event.key(), text)
          .whenComplete((sent, error) -> count(event, error));
    } catch (KafkaException e) {
      count(event, e);
    }
  }

  private void count(BankEvent event, Throwable error) {
    counts.count(event.topic(), error == null ? Fate.PUBLISHED : Fate.FAILED);
    if (error != null) {
      LOG.warn("{} was not published: {}", event, error.getMessage());
    }
  }
}

package schedlab.bank.events;

import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.stereotype.Component;
import org.springframework.transaction.event.TransactionalEventListener;
import schedlab.bank.events.EventCounts.Fate;

/** Counts the events that nobody will hear of because Kafka is switched off. */
@Component
@ConditionalOnProperty(name = "kafka.enabled", havingValue = "false")
class NoPublisher {

  private final EventCounts counts;

  NoPublisher(EventCounts counts) {
    this.counts = counts;
  }

  @TransactionalEventListener
  void drop(BankEvent event) {
    counts.count(event.topic(), Fate.DROPPED);
  }
}

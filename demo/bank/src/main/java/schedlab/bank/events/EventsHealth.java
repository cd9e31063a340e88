package schedlab.bank.events;

import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.TopicDescription;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.actuate.health.Health;
import org.springframework.boot.actuate.health.HealthIndicator;
import org.springframework.boot.actuate.health.Status;
import org.springframework.kafka.config.KafkaListenerEndpointRegistry;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.listener.MessageListenerContainer;
import org.springframework.stereotype.Component;

/**
 * Whether events flow: UP when the broker has both topics and the readers have their partitions,
 * OUT_OF_SERVICE until the readers have, DOWN without the broker or a topic, DEGRADED when Kafka is
 * switched off.
 */
@Component("events")
class EventsHealth implements HealthIndicator {

  private static final int TIMEOUT_MS = 5_000;
  private static final Status DEGRADED =
      new Status("DEGRADED", "events are dropped: kafka.enabled=false");

  private final boolean enabled;
  private final KafkaAdmin kafka;
  private final KafkaListenerEndpointRegistry readers;

  EventsHealth(
      @Value("${kafka.enabled}") boolean enabled,
      KafkaAdmin kafka,
      KafkaListenerEndpointRegistry readers) {
    this.enabled = enabled;
    this.kafka = kafka;
    this.readers = readers;
  }

  @Override
  public Health health() {
    if (!enabled) {
      return Health.status(DEGRADED).build();
    }
    List<String> names = Arrays.stream(Topic.values()).map(Topic::topicName).toList();
    try {
      Map<String, TopicDescription> topics = describe(names);
      Health.Builder health = haveAllReaders() ? Health.up() : Health.outOfService();
      topics.forEach((name, topic) -> health.withDetail(name, topic.partitions().size()));
      return health.build();
    } catch (ExecutionException e) {
      return Health.down().withDetail("error", String.valueOf(e.getCause())).build();
    } catch (TimeoutException e) {
      return Health.down().withDetail("error", "the broker does not answer").build();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Health.unknown().build();
    }
  }

  /** A client for each question: one that is kept would wake up during a measurement. */
  private Map<String, TopicDescription> describe(List<String> names)
      throws ExecutionException, InterruptedException, TimeoutException {
    Map<String, Object> settings = new HashMap<>(kafka.getConfigurationProperties());
    settings.put(AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, TIMEOUT_MS);
    settings.put(AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, TIMEOUT_MS);
    try (Admin admin = Admin.create(settings)) {
      return admin.describeTopics(names).allTopicNames().get(TIMEOUT_MS, TimeUnit.MILLISECONDS);
    }
  }

  private boolean haveAllReaders() {
    return readers.getListenerContainers().stream()
        .map(MessageListenerContainer::getAssignedPartitions)
        .noneMatch(partitions -> isNone(partitions));
  }

  private static boolean isNone(Collection<?> partitions) {
    return partitions == null || partitions.isEmpty();
  }
}

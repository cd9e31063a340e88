package schedlab.bank.events;

import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.springframework.stereotype.Component;

/** Outcomes of the events, counted. No event is lost unseen: each ends in exactly one of these. */
@Component
public class EventCounts {

  /** Taken by the broker, refused by it or by the lack of one, not sent because Kafka is off. */
  public enum Fate {
    PUBLISHED,
    FAILED,
    DROPPED
  }

  /** The counts of one topic. What was consumed is counted by the reader, and may lag behind. */
  public record Counts(long published, long failed, long dropped, long consumed) {}

  private final Map<Topic, Map<Fate, AtomicLong>> fates = new EnumMap<>(Topic.class);
  private final Map<Topic, AtomicLong> consumed = new EnumMap<>(Topic.class);

  EventCounts() {
    for (Topic topic : Topic.values()) {
      Map<Fate, AtomicLong> counts = new EnumMap<>(Fate.class);
      for (Fate fate : Fate.values()) {
        counts.put(fate, new AtomicLong());
      }
      fates.put(topic, counts);
      consumed.put(topic, new AtomicLong());
    }
  }

  void count(Topic topic, Fate fate) {
    fates.get(topic).get(fate).incrementAndGet();
  }

  public void countConsumed(Topic topic) {
    consumed.get(topic).incrementAndGet();
  }

  public Counts of(Topic topic) {
    Map<Fate, AtomicLong> counts = fates.get(topic);
    return new Counts(
        counts.get(Fate.PUBLISHED).get(),
        counts.get(Fate.FAILED).get(),
        counts.get(Fate.DROPPED).get(),
        consumed.get(topic).get());
  }

  Map<String, Counts> byTopic() {
    Map<String, Counts> all = new LinkedHashMap<>();
    for (Topic topic : Topic.values()) {
      all.put(topic.topicName(), of(topic));
    }
    return all;
  }
}

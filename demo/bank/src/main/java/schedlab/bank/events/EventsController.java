package schedlab.bank.events;

import java.util.Map;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The counts of events, so that a trial can show that Kafka took part in it. */
@RestController
class EventsController {

  private final boolean enabled;
  private final EventCounts counts;

  EventsController(@Value("${kafka.enabled}") boolean enabled, EventCounts counts) {
    this.enabled = enabled;
    this.counts = counts;
  }

  record EventsView(boolean kafka, Map<String, EventCounts.Counts> topics) {}

  @GetMapping("/api/events")
  EventsView events() {
    return new EventsView(enabled, counts.byTopic());
  }
}

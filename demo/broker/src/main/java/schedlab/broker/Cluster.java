package schedlab.broker;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** A broker that runs, seen as a client sees it. */
final class Cluster implements AutoCloseable {

  private final Admin admin;
  private final int timeoutMs;

  Cluster(int port, int timeoutMs) {
    this.timeoutMs = timeoutMs;
    admin =
        Admin.create(
            Map.of(
                "bootstrap.servers",
                "127.0.0.1:" + port,
                "request.timeout.ms",
                timeoutMs,
                "default.api.timeout.ms",
                timeoutMs,
                "reconnect.backoff.max.ms",
                200));
  }

  /** Makes the topics that are missing. */
  void makeTopics(Map<String, Integer> topics)
      throws InterruptedException, ExecutionException, TimeoutException {
    for (Map.Entry<String, Integer> topic : topics.entrySet()) {
      NewTopic made = new NewTopic(topic.getKey(), topic.getValue(), (short) 1);
      try {
        admin.createTopics(List.of(made)).all().get(timeoutMs, TimeUnit.MILLISECONDS);
      } catch (ExecutionException e) {
        if (!(e.getCause() instanceof TopicExistsException)) {
          throw e;
        }
      }
    }
  }

  /** Reasons why work cannot be given to the broker yet; none when it is ready. */
  List<String> missing(Map<String, Integer> topics) throws InterruptedException {
    try {
      var cluster = admin.describeCluster();
      if (cluster.nodes().get(timeoutMs, TimeUnit.MILLISECONDS).isEmpty()) {
        return List.of("no broker is registered");
      }
      if (isNobody(cluster.controller().get(timeoutMs, TimeUnit.MILLISECONDS))) {
        return List.of("no controller is elected");
      }
      return withoutLeader(topics);
    } catch (ExecutionException | TimeoutException e) {
      Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
      return List.of("no answer: " + cause);
    }
  }

  private List<String> withoutLeader(Map<String, Integer> topics)
      throws InterruptedException, ExecutionException, TimeoutException {
    List<String> missing = new ArrayList<>();
    for (String topic : topics.keySet()) {
      try {
        TopicDescription described =
            admin
                .describeTopics(List.of(topic))
                .allTopicNames()
                .get(timeoutMs, TimeUnit.MILLISECONDS)
                .get(topic);
        if (described.partitions().stream().anyMatch(p -> isNobody(p.leader()))) {
          missing.add("topic %s has a partition without leader".formatted(topic));
        }
      } catch (ExecutionException e) {
        if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) {
          throw e;
        }
        missing.add("topic %s does not exist".formatted(topic));
      }
    }
    return missing;
  }

  private static boolean isNobody(Node node) {
    return node == null || node.isEmpty();
  }

  @Override
  public void close() {
    admin.close(Duration.ofSeconds(1));
  }
}

package schedlab.broker;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/**
 * {@code GET /health}: 200 when the broker has a controller and leaders for all topics, 503 with
 * what is missing until then. It asks as a client asks, anew each time: an open port says little,
 * and a client that is kept would wake up during the measurement.
 */
final class HealthServer implements AutoCloseable {

  private static final int TIMEOUT_MS = 5_000;

  private final HttpServer server;
  private final int brokerPort;
  private final Map<String, Integer> topics;
  private volatile boolean started;

  HealthServer(Options options) throws IOException {
    brokerPort = options.port();
    topics = options.topics();
    InetSocketAddress at =
        new InetSocketAddress(InetAddress.getLoopbackAddress(), options.healthPort());
    server = HttpServer.create(at, 0);
    server.createContext("/health", this::answer);
    server.start();
  }

  /** From now on there is somebody to ask; until then the answer is 503. */
  void started() {
    started = true;
  }

  private void answer(HttpExchange exchange) throws IOException {
    try (exchange) {
      List<String> missing = missing();
      String text =
          missing.isEmpty()
              ? "{\"status\":\"UP\"}\n"
              : "{\"status\":\"DOWN\",\"missing\":\"%s\"}\n"
                  .formatted(String.join("; ", missing).replaceAll("[\"\\\\\\p{Cntrl}]", "'"));
      byte[] body = text.getBytes(StandardCharsets.UTF_8);
      exchange.getResponseHeaders().set("Content-Type", "application/json");
      exchange.sendResponseHeaders(missing.isEmpty() ? 200 : 503, body.length);
      exchange.getResponseBody().write(body);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private List<String> missing() throws InterruptedException {
    if (!started) {
      return List.of("the broker is starting");
    }
    try (Cluster cluster = new Cluster(brokerPort, TIMEOUT_MS)) {
      return cluster.missing(topics);
    }
  }

  @Override
  public void close() {
    server.stop(0);
  }
}

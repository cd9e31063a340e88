package schedlab.bank;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.math.BigDecimal;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The service as its users see it: over HTTP. */
public record Api(int port) {

  private static final HttpClient HTTP =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  private static final ObjectMapper JSON =
      JsonMapper.builder()
          .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
          .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
          .build();

  private static final Pattern CONTENT_TYPE =
      Pattern.compile("^content-type: ([^;\r\n]*)", Pattern.CASE_INSENSITIVE | Pattern.MULTILINE);

  public record Answer(int status, String contentType, JsonNode body, HttpResponse<String> raw) {
    public BigDecimal money(String field) {
      return body.get(field).decimalValue();
    }
  }

  public Answer get(String path) {
    return send(request(path).GET());
  }

  public Answer post(String path, String body) {
    return send(
        request(path)
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body)));
  }

  public long open(String initialBalance) {
    String body = "{\"owner\":\"somebody\",\"initialBalance\":%s}".formatted(initialBalance);
    return post("/api/accounts", body).body().get("id").asLong();
  }

  public Answer transfer(long from, long to, String amount) {
    return post(
        "/api/transactions/transfer",
        "{\"fromAccountId\":%d,\"toAccountId\":%d,\"amount\":%s}".formatted(from, to, amount));
  }

  public BigDecimal balance(long account) {
    return get("/api/accounts/%d/balance".formatted(account)).money("balance");
  }

  /** Outcomes of the events of a topic. */
  public Map<String, Long> events(String topic) {
    JsonNode counts = get("/api/events").body().get("topics").get(topic);
    return JSON.convertValue(
        counts, JSON.getTypeFactory().constructMapType(Map.class, String.class, Long.class));
  }

  /** The answer to a request with this line, which need not be one; it has no raw answer. */
  public Answer line(String line) throws IOException {
    try (Socket socket = new Socket("127.0.0.1", port)) {
      String request = line + "\r\nHost: bank\r\nConnection: close\r\n\r\n";
      socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
      String text = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      String[] parts = text.split("\r\n\r\n", 2);
      Matcher type = CONTENT_TYPE.matcher(parts[0]);
      int status = Integer.parseInt(text.split(" ", 3)[1]);
      return new Answer(status, type.find() ? type.group(1) : "", JSON.readTree(parts[1]), null);
    }
  }

  private HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(URI.create("http://127.0.0.1:%d%s".formatted(port, path)));
  }

  private static Answer send(HttpRequest.Builder request) {
    try {
      HttpResponse<String> raw = HTTP.send(request.build(), BodyHandlers.ofString());
      String type = raw.headers().firstValue("Content-Type").orElse("");
      return new Answer(raw.statusCode(), type, JSON.readTree(raw.body()), raw);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException(e);
    }
  }
}

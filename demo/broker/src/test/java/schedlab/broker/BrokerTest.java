package schedlab.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Each test starts real brokers, as processes. */
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class BrokerTest {

  private static final int TERMINATED = 128 + 15;

  @TempDir Path dir;
  private List<Integer> ports;
  private final Map<Process, Path> outputs = new HashMap<>();

  @BeforeEach
  void choosePorts() throws IOException {
    ports = freePorts(3);
  }

  @AfterEach
  void endProcesses() {
    outputs.keySet().forEach(Process::destroyForcibly);
  }

  /** All are taken until the last one is known: a port that was given back may come again. */
  private static List<Integer> freePorts(int count) throws IOException {
    List<ServerSocket> sockets = new ArrayList<>();
    try {
      while (sockets.size() < count) {
        sockets.add(new ServerSocket(0, 1, InetAddress.getLoopbackAddress()));
      }
      return sockets.stream().map(ServerSocket::getLocalPort).toList();
    } finally {
      for (ServerSocket socket : sockets) {
        socket.close();
      }
    }
  }

  private Process run(String command, String... more) throws IOException {
    List<String> line = new ArrayList<>();
    // Options that make a JVM start quickly: these brokers live for seconds.
    line.addAll(List.of("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
    line.addAll(List.of("-cp", System.getProperty("java.class.path")));
    line.addAll(List.of("schedlab.broker.Broker", command));
    line.addAll(List.of("--dir", dir.toString(), "--port", "" + ports.get(0)));
    line.addAll(List.of("--controller-port", "" + ports.get(1)));
    line.addAll(List.of("--health-port", "" + ports.get(2)));
    line.addAll(List.of(more));
    Path output = Files.createTempFile("broker", ".log");
    output.toFile().deleteOnExit();
    Process process =
        new ProcessBuilder(line).redirectErrorStream(true).redirectOutput(output.toFile()).start();
    outputs.put(process, output);
    return process;
  }

  private String output(Process process) {
    try {
      return Files.readString(outputs.get(process));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private int status(Process process) throws InterruptedException {
    assertTrue(process.waitFor(2, TimeUnit.MINUTES), () -> "still running: " + output(process));
    return process.exitValue();
  }

  private int health() throws Exception {
    URI uri = URI.create("http://127.0.0.1:%d/health".formatted(ports.get(2)));
    HttpRequest request = HttpRequest.newBuilder(uri).timeout(Duration.ofSeconds(20)).build();
    try {
      return HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).statusCode();
    } catch (ConnectException e) {
      return 0;
    }
  }

  private void awaitHealth(Process broker) throws Exception {
    while (health() != 200) {
      assertTrue(broker.isAlive(), () -> output(broker));
      Thread.sleep(100);
    }
  }

  private void send(String topic, String value) throws Exception {
    Map<String, Object> settings = Map.of("bootstrap.servers", "127.0.0.1:" + ports.get(0));
    var strings = new StringSerializer();
    try (var producer = new KafkaProducer<>(settings, strings, strings)) {
      producer.send(new ProducerRecord<>(topic, value)).get();
    }
  }

  private String firstValue(String topic) {
    Map<String, Object> settings = Map.of("bootstrap.servers", "127.0.0.1:" + ports.get(0));
    var strings = new StringDeserializer();
    try (var consumer = new KafkaConsumer<>(settings, strings, strings)) {
      List<TopicPartition> partitions = List.of(new TopicPartition(topic, 0));
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      return consumer.poll(Duration.ofSeconds(60)).iterator().next().value();
    }
  }

  @Test
  void a_broker_starts_from_nothing_and_a_second_start_keeps_what_the_first_stored()
      throws Exception {
    Process first = run("start", "--topics", "letters:1");
    awaitHealth(first);
    send("letters", "a message");
    first.destroy();
    assertEquals(TERMINATED, status(first));
    assertTrue(output(first).contains("broker: ready"), output(first));
    assertTrue(output(first).endsWith("broker: stopped\n"), output(first));
    assertEquals(0, health());

    choosePorts();
    Process second = run("start", "--topics", "letters:1");
    awaitHealth(second);
    assertEquals("a message", firstValue("letters"));
  }

  @Test
  void ready_means_that_all_topics_exist() throws Exception {
    Process broker = run("start", "--topics", "one:2");
    awaitHealth(broker);
    try (Cluster cluster = new Cluster(ports.get(0), 20_000)) {
      Map<String, Integer> topics = Map.of("one", 2, "two", 3);
      assertEquals(List.of("topic two does not exist"), cluster.missing(topics));
      assertEquals(0, status(run("topics", "--topics", "one:2,two:3")));
      assertEquals(List.of(), cluster.missing(topics));
    }
  }

  @Test
  void without_a_broker_ready_says_so() throws Exception {
    Process ready = run("ready", "--wait", "0");
    assertEquals(1, status(ready));
    assertTrue(output(ready).contains("not ready after 0 s: no answer"), output(ready));
  }

  @Test
  void a_taken_port_is_told_before_anything_is_written() throws Exception {
    try (var taken = new ServerSocket(ports.get(1), 1, InetAddress.getLoopbackAddress())) {
      Process broker = run("start");
      assertEquals(1, status(broker));
      String told =
          "port %d of 127.0.0.1 is taken; give another one with --controller-port"
              .formatted(taken.getLocalPort());
      assertTrue(output(broker).contains(told), output(broker));
      assertFalse(Files.exists(dir.resolve("server.properties")));
    }
  }

  @Test
  void a_directory_is_formatted_once() throws Exception {
    Storage storage = new Storage(dir);
    List<String> arguments = List.of("format", "--dir", dir.toString());
    Path settings = storage.write(Settings.of(Options.parse(arguments, Map.of()), 2));
    storage.format(settings);
    assertTrue(storage.isFormatted());
    var error = assertThrows(IOException.class, () -> storage.format(settings));
    assertTrue(error.getMessage().contains("is formatted already"), error.getMessage());
  }
}

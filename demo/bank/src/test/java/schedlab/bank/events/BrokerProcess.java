package schedlab.bank.events;

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
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.springframework.util.FileSystemUtils;

/** The broker of the module next door, as a process: the one that trials run with. */
final class BrokerProcess implements AutoCloseable {

  private static final Path JARS = Path.of("..", "target", "broker");

  private final List<Integer> ports = freePorts(3);
  private final int port = ports.get(0);
  private final int healthPort = ports.get(1);
  private final Path dir;
  private final Process process;

  BrokerProcess() {
    if (!Files.isDirectory(JARS)) {
      throw new IllegalStateException(
          JARS.toAbsolutePath().normalize() + " is missing; `make demo-jars` makes it");
    }
    try {
      dir = Files.createTempDirectory("broker");
      process = start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    awaitHealth();
  }

  private Process start() throws IOException {
    List<String> line =
        List.of(
            "java",
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-cp",
            JARS + "/*",
            "schedlab.broker.Broker",
            "start",
            "--dir",
            dir.toString(),
            "--port",
            Integer.toString(port),
            "--controller-port",
            Integer.toString(ports.get(2)),
            "--health-port",
            Integer.toString(healthPort));
    return new ProcessBuilder(line)
        .redirectErrorStream(true)
        .redirectOutput(dir.resolve("output").toFile())
        .start();
  }

  private void awaitHealth() {
    URI uri = URI.create("http://127.0.0.1:%d/health".formatted(healthPort));
    HttpRequest request = HttpRequest.newBuilder(uri).timeout(Duration.ofMinutes(1)).build();
    HttpClient http = HttpClient.newHttpClient();
    while (true) {
      try {
        if (http.send(request, BodyHandlers.discarding()).statusCode() == 200) {
          return;
        }
      } catch (ConnectException e) {
        // It does not listen yet.
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
      if (!process.isAlive()) {
        throw new IllegalStateException("the broker did not start: " + output());
      }
      sleep();
    }
  }

  private static void sleep() {
    try {
      Thread.sleep(100);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private String output() {
    try {
      return Files.readString(dir.resolve("output"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  String address() {
    return "127.0.0.1:" + port;
  }

  /** All are taken until the last one is known: a port that was given back may come again. */
  private static List<Integer> freePorts(int count) {
    List<ServerSocket> sockets = new ArrayList<>();
    try {
      while (sockets.size() < count) {
        sockets.add(new ServerSocket(0, 1, InetAddress.getLoopbackAddress()));
      }
      List<Integer> ports = sockets.stream().map(ServerSocket::getLocalPort).toList();
      for (ServerSocket socket : sockets) {
        socket.close();
      }
      return ports;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public void close() {
    try {
      process.destroy();
      if (!process.waitFor(1, TimeUnit.MINUTES)) {
        process.destroyForcibly().waitFor();
      }
      FileSystemUtils.deleteRecursively(dir);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}

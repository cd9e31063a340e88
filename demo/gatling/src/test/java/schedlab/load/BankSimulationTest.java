package schedlab.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Short runs of the real load on the real service, both as the processes that trials start. */
@Timeout(value = 5, unit = TimeUnit.MINUTES)
class BankSimulationTest {

  private static final Path BANK = Path.of("..", "target", "bank");

  @TempDir static Path serviceDir;
  private static Jvm service;
  private static int port;

  @TempDir Path dir;

  @BeforeAll
  static void startService() throws Exception {
    assertTrue(Files.isDirectory(BANK), BANK + " is missing; `make demo-jars` makes it");
    port = freePort();
    service =
        Jvm.start(
            serviceDir.resolve("output"),
            BANK + "/*",
            "schedlab.bank.BankApplication",
            "--server.port=" + port,
            "--kafka.enabled=false");
    URI health = URI.create("http://127.0.0.1:%d/actuator/health".formatted(port));
    while (status(health) != 200) {
      assertTrue(service.process().isAlive(), service.said());
      Thread.sleep(100);
    }
  }

  @AfterAll
  static void stopService() {
    service.close();
  }

  private static int status(URI uri) throws Exception {
    HttpRequest request = HttpRequest.newBuilder(uri).build();
    try {
      return HttpClient.newHttpClient().send(request, BodyHandlers.discarding()).statusCode();
    } catch (ConnectException e) {
      return 0;
    }
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  private Jvm simulate(int port, String... settings) throws IOException {
    List<String> arguments = new ArrayList<>();
    arguments.add("-Dbank.baseUrl=http://127.0.0.1:" + port);
    arguments.add("-Dbank.log=" + dir.resolve("requests.csv"));
    arguments.addAll(List.of(settings));
    arguments.addAll(List.of("io.gatling.app.Gatling", "-s", BankSimulation.class.getName()));
    arguments.addAll(List.of("-rf", dir.toString(), "-nr"));
    String classPath = System.getProperty("java.class.path");
    return Jvm.start(dir.resolve("output"), classPath, arguments.toArray(String[]::new));
  }

  private Path simulationLog() throws IOException {
    try (Stream<Path> files = Files.walk(dir)) {
      return files.filter(f -> f.endsWith("simulation.log")).findAny().orElseThrow();
    }
  }

  private static Map<String, Long> counts(List<Outcome> outcomes) {
    return outcomes.stream()
        .filter(outcome -> outcome.phase() != Phase.WARM_UP)
        .collect(
            Collectors.groupingBy(
                o -> o.request() + (o.ok() ? " ok" : " failed"),
                TreeMap::new,
                Collectors.counting()));
  }

  /** Requests of a run with these settings, if all goes well. */
  private static Map<String, Long> due(Settings settings) {
    Map<String, Long> counts = new TreeMap<>();
    for (Kind kind : Kind.values()) {
      long[] due = Profile.dueMs(new Profile(settings).measured(kind));
      var draws = new Draw.Stream(settings, settings.accounts(), kind, false);
      for (int k = 0; k < due.length; k++) {
        boolean refused = kind == Kind.TRANSFER && draws.at(k).suspicious();
        String name = refused ? Requests.SUSPICIOUS_TRANSFER : kind.title();
        counts.merge(name + " ok", 1L, Long::sum);
      }
    }
    return counts;
  }

  @Test
  void a_run_has_every_request_that_was_due_and_all_are_right() throws Exception {
    String[] settings = {
      "warmUp", "1", "ramp", "1", "steady", "3", "seed", "5", "suspiciousShare", "0.2"
    };
    String[] properties = new String[settings.length / 2];
    for (int i = 0; i < properties.length; i++) {
      properties[i] = "-Dbank.%s=%s".formatted(settings[2 * i], settings[2 * i + 1]);
    }
    Jvm run = simulate(port, properties);
    assertEquals(0, run.await(), run.said());

    List<Outcome> outcomes = RequestLog.read(dir.resolve("requests.csv"));
    Map<String, Long> due = due(ProfileTest.settings(settings));
    assertTrue(due.get("Suspicious Transfer ok") > 5, due.toString());
    assertEquals(due, counts(outcomes), () -> faults(outcomes));

    // The warm-up is in our log, marked, and in no count of Gatling's.
    long warmUp = outcomes.stream().filter(o -> o.phase() == Phase.WARM_UP).count();
    assertEquals(Arrays.stream(Kind.values()).mapToDouble(Kind::highRate).sum(), warmUp);
    assertEquals(due, counts(SimulationLog.read(simulationLog())));

    for (Outcome outcome : outcomes) {
      assertTrue(outcome.dueUs() <= outcome.startUs(), outcome.toString());
      assertTrue(outcome.startUs() < outcome.endUs(), outcome.toString());
    }
    assertTrue(run.said().contains("load: measuring, monotonic_ns="), run.said());
    damaged(simulationLog());
  }

  private static String faults(List<Outcome> outcomes) {
    return outcomes.stream()
        .filter(o -> !o.ok())
        .map(Outcome::toCsv)
        .collect(Collectors.joining("\n"));
  }

  /** A log that was cut off or that another version wrote is told, not half read. */
  private void damaged(Path log) throws IOException {
    byte[] bytes = Files.readAllBytes(log);
    Path cut = Files.write(dir.resolve("cut.log"), Arrays.copyOf(bytes, bytes.length - 3));
    var error = assertThrows(IOException.class, () -> SimulationLog.read(cut));
    assertTrue(error.getMessage().endsWith("ends in the middle of a record"), error.getMessage());

    // The version is the first text of the log: length, then characters.
    byte[] older = bytes.clone();
    System.arraycopy("3.11.".getBytes(StandardCharsets.ISO_8859_1), 0, older, 5, 5);
    Path other = Files.write(dir.resolve("older.log"), older);
    var version = assertThrows(IOException.class, () -> SimulationLog.read(other));
    assertTrue(version.getMessage().contains("only 3.14.x is known"), version.getMessage());
  }

  @Test
  void what_meets_accounts_that_do_not_exist_has_failed() throws Exception {
    Path accounts = Files.write(dir.resolve("accounts"), List.of("900001", "900002"));
    Jvm run = simulate(port, "-Dbank.accountsFile=" + accounts, "-Dbank.ramp=0", "-Dbank.steady=1");
    assertEquals(0, run.await(), run.said());

    List<Outcome> outcomes = RequestLog.read(dir.resolve("requests.csv"));
    for (Outcome outcome : outcomes) {
      boolean opens = outcome.request().equals(Kind.CREATE_ACCOUNT.title());
      assertEquals(opens, outcome.ok(), outcome.toString());
      assertEquals(opens ? 201 : 404, outcome.status(), outcome.toString());
      assertTrue(opens || outcome.reason().startsWith("status 404 instead of "));
    }
    assertEquals(counts(outcomes), counts(SimulationLog.read(simulationLog())));
  }

  /** A service that says 200 to everything, and nothing to questions for a balance. */
  private static HttpServer yesMan() throws IOException {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext(
        "/",
        exchange -> {
          if (!exchange.getRequestURI().getPath().endsWith("/balance")) {
            exchange.sendResponseHeaders(200, 2);
            exchange.getResponseBody().write("{}".getBytes(StandardCharsets.UTF_8));
          }
          exchange.close();
        });
    server.start();
    return server;
  }

  @Test
  void a_good_status_alone_is_no_success_and_no_answer_is_told_as_such() throws Exception {
    Path accounts = Files.write(dir.resolve("accounts"), List.of("1", "2"));
    HttpServer server = yesMan();
    try {
      int at = server.getAddress().getPort();
      Jvm run =
          simulate(at, "-Dbank.accountsFile=" + accounts, "-Dbank.ramp=0", "-Dbank.steady=1");
      assertEquals(0, run.await(), run.said());
    } finally {
      server.stop(0);
    }
    Map<String, String> reasons = new TreeMap<>();
    for (Outcome outcome : RequestLog.read(dir.resolve("requests.csv"))) {
      assertFalse(outcome.ok(), outcome.toString());
      reasons.put(outcome.request(), outcome.reason());
    }
    assertEquals("no answer: closed", reasons.get("Get Balance"));
    assertEquals("wrong answer", reasons.get("Prime Search"));
    assertEquals("wrong answer", reasons.get("Fraud Check"));
    assertEquals("status 200 instead of 201", reasons.get("Transfer"));
  }

  @Test
  void requests_to_where_nobody_listens_are_refused_those_of_the_warm_up_too() throws Exception {
    Path accounts = Files.write(dir.resolve("accounts"), List.of("1", "2"));
    String file = "-Dbank.accountsFile=" + accounts;
    Jvm run = simulate(freePort(), file, "-Dbank.warmUp=1", "-Dbank.ramp=0", "-Dbank.steady=1");
    assertEquals(0, run.await(), run.said());

    List<Outcome> outcomes = RequestLog.read(dir.resolve("requests.csv"));
    assertTrue(outcomes.stream().anyMatch(o -> o.phase() == Phase.WARM_UP));
    for (Outcome outcome : outcomes) {
      assertEquals("no answer: refused", outcome.reason(), outcome.toString());
      assertEquals(0, outcome.status(), outcome.toString());
    }
    // What Gatling says of each failure in its log is for us and not for the console.
    assertFalse(run.said().contains("failed for user"), run.said());
  }

  @Test
  void accounts_can_be_opened_beforehand() throws Exception {
    Path file = dir.resolve("accounts");
    String classPath = System.getProperty("java.class.path");
    String url = "-Dbank.baseUrl=http://127.0.0.1:" + port;
    String main = Accounts.class.getName();
    Jvm setUp =
        Jvm.start(dir.resolve("out"), classPath, url, "-Dbank.accounts=3", main, file.toString());
    assertEquals(0, setUp.await(), setUp.said());
    List<String> numbers = Files.readAllLines(file);
    assertEquals(3, numbers.size());
    for (String number : numbers) {
      String account = "http://127.0.0.1:%d/api/accounts/%s".formatted(port, number);
      assertEquals(200, status(URI.create(account)));
    }
  }

  @Test
  void a_service_that_is_not_there_is_told_and_no_load_begins() throws Exception {
    int nobody = freePort();
    Jvm run = simulate(nobody, "-Dbank.ramp=0", "-Dbank.steady=1");
    assertNotEquals(0, run.await());
    String told = "http://127.0.0.1:%d does not answer".formatted(nobody);
    assertTrue(run.said().contains(told), run.said());
  }

  @Test
  void a_wrong_setting_ends_the_run_at_once_by_one_line() throws Exception {
    Jvm run = simulate(port, "-Dbank.accounts=0");
    assertEquals(1, run.await(), run.said());
    String told = "load: bank.accounts must be a whole number from 2 to 1000000, not '0'";
    assertTrue(run.said().contains(told), run.said());
    assertFalse(run.said().contains("IllegalArgumentException"), run.said());
  }

  @Test
  void a_log_that_cannot_be_written_is_told_and_no_load_begins() throws Exception {
    Path file = Files.createFile(dir.resolve("file")).resolve("requests.csv");
    Jvm run = simulate(port, "-Dbank.ramp=0", "-Dbank.steady=1", "-Dbank.log=" + file);
    assertNotEquals(0, run.await());
    assertTrue(run.said().contains(dir.resolve("file").toString()), run.said());
    assertFalse(run.said().contains("load: measuring"), run.said());
  }
}

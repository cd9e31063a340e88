package schedlab.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SummaryTest {

  @TempDir Path dir;

  private static Outcome outcome(Phase phase, long dueMs, long startMs, long endMs, boolean ok) {
    String reason = ok ? "" : "no answer";
    return new Outcome(
        "Transfer", phase, dueMs * 1_000, startMs * 1_000, endMs * 1_000, ok, ok ? 201 : 0, reason);
  }

  @Test
  void latency_runs_from_when_a_request_was_due() {
    List<Outcome> outcomes = new ArrayList<>();
    for (int i = 1; i <= 100; i++) {
      outcomes.add(outcome(Phase.STEADY, 1_000, 1_500, 1_500 + i, true));
    }
    Summary.Line line = Summary.lines(outcomes).get(0);
    assertEquals(550, line.p50());
    assertEquals(595, line.p95());
    assertEquals(599, line.p99());
    assertEquals(500, line.late());
  }

  @Test
  void the_warm_up_does_not_count_and_failures_have_no_latency() {
    List<Outcome> outcomes =
        List.of(
            outcome(Phase.WARM_UP, 0, 0, 9_000, true),
            outcome(Phase.RAMP_UP, 0, 0, 10, true),
            outcome(Phase.STEADY, 0, 0, 7_000, false));
    Summary.Line all = Summary.lines(outcomes).get(1);
    assertEquals("all", all.request());
    assertEquals(1, all.ok());
    assertEquals(1, all.failed());
    assertEquals(10, all.p99());
  }

  @Test
  void a_log_is_read_as_it_was_written() throws IOException {
    RequestLog log = new RequestLog();
    long now = System.nanoTime();
    log.add("Transfer", Phase.STEADY, 40, now + 45_000_000, 503, "status 503 instead of 201");
    log.add("Get Balance", Phase.RAMP_UP, 10, now + 10_000_000, 200, "");
    Path file = dir.resolve("new").resolve("requests.csv");
    log.create(file);
    log.append(file);

    List<Outcome> read = RequestLog.read(file);
    assertEquals(List.of("Get Balance", "Transfer"), read.stream().map(Outcome::request).toList());
    Outcome late = read.get(1);
    assertEquals(Phase.STEADY, late.phase());
    assertEquals(5_000, late.startUs() - late.dueUs(), 1);
    assertEquals(503, late.status());
    assertEquals("status 503 instead of 201", late.reason());
    // The times are those of the calendar.
    assertEquals(System.currentTimeMillis(), late.startUs() / 1e3, 60_000);
  }

  @Test
  void another_file_is_refused() throws IOException {
    Path file = Files.writeString(dir.resolve("other.csv"), "a,b,c\n");
    var error = assertThrows(IOException.class, () -> RequestLog.read(file));
    assertTrue(error.getMessage().contains("no log of requests"), error.getMessage());
    Path log = Files.writeString(dir.resolve("simulation.log"), "RUN\tsomething\n");
    var other = assertThrows(IOException.class, () -> SimulationLog.read(log));
    assertTrue(other.getMessage().contains("is no simulation.log"), other.getMessage());
  }

  @Test
  void a_comma_in_a_reason_is_quoted() {
    Outcome outcome = new Outcome("a", null, null, 1, 2, false, 0, "find(\"x\"), found nothing");
    assertEquals("a,,,1,2,false,0,\"find(\"\"x\"\"), found nothing\"", outcome.toCsv());
  }
}

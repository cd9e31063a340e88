package schedlab.load;

import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Every request of a run, with the times that Gatling's own log lacks: when it was due, and begin
 * and end in microseconds. Rows are kept in memory and written at the end, since only then is known
 * when the injection began, and so that no disk is written to while it is measured.
 */
final class RequestLog {

  private record Row(
      String request,
      Phase phase,
      long dueMs,
      long startNs,
      long endNs,
      int status,
      String reason) {}

  private final List<Row> rows = new ArrayList<>();
  private final long epochMinusMonotonicNs;

  RequestLog() {
    long epochUs = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    epochMinusMonotonicNs = epochUs * 1_000 - System.nanoTime();
  }

  /** An empty reason means that the answer was the right one. */
  synchronized void add(
      String request, Phase phase, long dueMs, long startNs, int status, String reason) {
    rows.add(new Row(request, phase, dueMs, startNs, System.nanoTime(), status, reason));
  }

  /** Begins the file, before the load: what cannot be written is told at once. */
  void create(Path file) throws IOException {
    Files.createDirectories(file.toAbsolutePath().getParent());
    try (BufferedWriter out = Files.newBufferedWriter(file)) {
      out.write("# schedlab requests 1\n");
      out.write("# epoch_minus_monotonic_ns=%d\n".formatted(epochMinusMonotonicNs));
      out.write(Outcome.HEADER + "\n");
    }
  }

  /** Adds all rows to the file that {@link #create} began. */
  synchronized void append(Path file) throws IOException {
    try (BufferedWriter out = Files.newBufferedWriter(file, StandardOpenOption.APPEND)) {
      for (Outcome outcome : outcomes()) {
        out.write(outcome.toCsv() + "\n");
      }
    }
  }

  /** Reads such a file. */
  static List<Outcome> read(Path file) throws IOException {
    List<String> lines =
        Files.readAllLines(file).stream().filter(line -> !line.startsWith("#")).toList();
    if (lines.isEmpty() || !lines.get(0).equals(Outcome.HEADER)) {
      throw new IOException("%s is no log of requests: its head is missing".formatted(file));
    }
    List<Outcome> outcomes = new ArrayList<>();
    for (String line : lines.subList(1, lines.size())) {
      outcomes.add(Outcome.fromCsv(line));
    }
    return outcomes;
  }

  /** In the order in which they were due. */
  private List<Outcome> outcomes() {
    long beginNs = beginNs();
    return rows.stream()
        .sorted(Comparator.comparingLong(Row::dueMs).thenComparingLong(Row::startNs))
        .map(row -> outcome(row, beginNs))
        .toList();
  }

  /**
   * When the injection began. Gatling does not tell; nobody was earlier than due, so it is taken
   * that the most punctual user of the run was exactly punctual. A delay that all users have in
   * common is not seen.
   */
  private long beginNs() {
    return rows.stream().mapToLong(row -> row.startNs() - row.dueMs() * 1_000_000).min().orElse(0);
  }

  private Outcome outcome(Row row, long beginNs) {
    return new Outcome(
        row.request(),
        row.phase(),
        epochUs(beginNs + row.dueMs() * 1_000_000),
        epochUs(row.startNs()),
        epochUs(row.endNs()),
        row.reason().isEmpty(),
        row.status(),
        row.reason());
  }

  private long epochUs(long monotonicNs) {
    return (monotonicNs + epochMinusMonotonicNs) / 1_000;
  }
}

package schedlab.load;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Counts and percentiles of a run, for each request name: of our {@code requests.csv} or of any
 * {@code simulation.log}. With {@code --csv} it writes the requests themselves instead.
 */
public final class Summary {

  private static final String USAGE =
      "usage: java -cp 'target/gatling/*' schedlab.load.Summary [--csv] FILE";

  /**
   * One line of the table, in milliseconds. Latency runs from when a request was due, or from its
   * begin where that is not known; it is that of the successful ones.
   */
  record Line(String request, int ok, int failed, double p50, double p95, double p99, double late) {

    static Line of(String request, List<Outcome> outcomes) {
      List<Outcome> good = outcomes.stream().filter(Outcome::ok).toList();
      double[] latencies = good.stream().mapToDouble(Line::latencyMs).sorted().toArray();
      double[] late = outcomes.stream().mapToDouble(Line::lateMs).sorted().toArray();
      return new Line(
          request,
          good.size(),
          outcomes.size() - good.size(),
          percentile(latencies, 50),
          percentile(latencies, 95),
          percentile(latencies, 99),
          percentile(late, 99));
    }

    private static double latencyMs(Outcome outcome) {
      long from = outcome.dueUs() == null ? outcome.startUs() : outcome.dueUs();
      return (outcome.endUs() - from) / 1e3;
    }

    private static double lateMs(Outcome outcome) {
      return outcome.dueUs() == null ? Double.NaN : (outcome.startUs() - outcome.dueUs()) / 1e3;
    }

    /** The nearest rank; NaN where there is nothing. */
    private static double percentile(double[] sorted, int percent) {
      if (sorted.length == 0) {
        return Double.NaN;
      }
      return sorted[Math.max(0, (int) Math.ceil(sorted.length * percent / 100.0) - 1)];
    }
  }

  private Summary() {}

  public static void main(String[] arguments) {
    boolean csv = Arrays.asList(arguments).contains("--csv");
    List<String> files = Arrays.stream(arguments).filter(a -> !a.startsWith("--")).toList();
    if (files.size() != 1 || arguments.length != (csv ? 2 : 1)) {
      System.err.println(USAGE);
      System.exit(2);
    }
    try {
      List<Outcome> outcomes = read(Path.of(files.get(0)));
      if (csv) {
        System.out.println(Outcome.HEADER);
        outcomes.forEach(outcome -> System.out.println(outcome.toCsv()));
      } else {
        print(lines(outcomes));
      }
    } catch (IOException e) {
      System.err.println("summary: " + e.getMessage());
      System.exit(1);
    }
  }

  private static List<Outcome> read(Path file) throws IOException {
    boolean ours = file.toString().endsWith(".csv");
    return ours ? RequestLog.read(file) : SimulationLog.read(file);
  }

  /** A line for each request name, and one for all; the warm-up does not count. */
  static List<Line> lines(List<Outcome> outcomes) {
    Map<String, List<Outcome>> byName = new TreeMap<>();
    List<Outcome> all = new ArrayList<>();
    for (Outcome outcome : outcomes) {
      if (outcome.phase() != Phase.WARM_UP) {
        byName.computeIfAbsent(outcome.request(), name -> new ArrayList<>()).add(outcome);
        all.add(outcome);
      }
    }
    List<Line> lines = new ArrayList<>();
    byName.forEach((name, requests) -> lines.add(Line.of(name, requests)));
    lines.add(Line.of("all", all));
    return lines;
  }

  private static void print(List<Line> lines) {
    String format = "%-24s %8s %8s %10s %10s %10s %10s%n";
    System.out.printf(format, "request", "ok", "failed", "p50 ms", "p95 ms", "p99 ms", "p99 late");
    for (Line line : lines) {
      System.out.printf(
          format,
          line.request(),
          line.ok(),
          line.failed(),
          number(line.p50()),
          number(line.p95()),
          number(line.p99()),
          number(line.late()));
    }
  }

  private static String number(double value) {
    return Double.isNaN(value) ? "-" : "%.1f".formatted(value);
  }
}

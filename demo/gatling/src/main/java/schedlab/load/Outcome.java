package schedlab.load;

import java.io.IOException;

/**
 * One request as it went.
 *
 * @param request its name
 * @param phase the part of the run in which it was due; null where that is not known
 * @param dueUs when it was due; null where that is not known
 * @param startUs when it was begun
 * @param endUs when its answer was judged
 * @param ok whether the answer was the right one
 * @param status the HTTP status; 0 where there was no answer, or where it is not known
 * @param reason why it was not ok, for people; empty where it was
 */
record Outcome(
    String request,
    Phase phase,
    Long dueUs,
    long startUs,
    long endUs,
    boolean ok,
    int status,
    String reason) {

  static final String HEADER = "request,phase,due_us,start_us,end_us,ok,status,reason";

  String toCsv() {
    return String.join(
        ",",
        quoted(request),
        phase == null ? "" : phase.title(),
        dueUs == null ? "" : dueUs.toString(),
        Long.toString(startUs),
        Long.toString(endUs),
        Boolean.toString(ok),
        Integer.toString(status),
        quoted(reason));
  }

  /** Reads a line that our log wrote; names and reasons of ours have no commas. */
  static Outcome fromCsv(String line) throws IOException {
    String[] cells = line.split(",", -1);
    try {
      return new Outcome(
          cells[0],
          Phase.of(cells[1]),
          Long.valueOf(cells[2]),
          Long.parseLong(cells[3]),
          Long.parseLong(cells[4]),
          Boolean.parseBoolean(cells[5]),
          Integer.parseInt(cells[6]),
          cells[7]);
    } catch (IllegalArgumentException | ArrayIndexOutOfBoundsException e) {
      throw new IOException("this is no line of a log of requests: " + line, e);
    }
  }

  private static String quoted(String text) {
    boolean plain = text.chars().noneMatch(c -> c == ',' || c == '"' || c == '\n' || c == '\r');
    return plain ? text : '"' + text.replace("\"", "\"\"") + '"';
  }
}

package schedlab.load;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads Gatling's own {@code simulation.log}, which is binary since 3.13. It works for simulations
 * that know nothing of us. Times are whole milliseconds, and when a request was due is not in it.
 *
 * <p>The format, as Gatling 3.14 writes and reads it, big-endian: records that begin with a byte. 0
 * is the run, first and once: version, class (strings), begin (long, ms since 1970), description,
 * names of scenarios (int count, strings), assertions (int count, each int length and bytes). 1 is
 * a request: groups (int count, cached strings), name (cached), begin and end (int, ms after the
 * begin of the run), ok (byte), message (cached). 2 is a user: scenario (int), begins (byte), time
 * (int). 3 is a group: groups, begin, end, cumulated time (int each), ok (byte). 4 is an error:
 * message (cached), time (int). A string is its length in bytes (int), the bytes and, unless it is
 * empty, a byte that is 0 for Latin-1 and 1 for UTF-16. A cached string is an int: positive before
 * a new string that gets this number, negative for the string of that number.
 */
final class SimulationLog implements AutoCloseable {

  private static final String KNOWN = "3.14.";
  private static final int LONGEST_STRING = 1 << 20;

  private final Path file;
  private final DataInputStream in;
  private final Map<Integer, String> cache = new HashMap<>();

  private SimulationLog(Path file) throws IOException {
    this.file = file;
    in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file)));
  }

  /** All requests of the log, in the order in which they ended. */
  static List<Outcome> read(Path file) throws IOException {
    try (SimulationLog log = new SimulationLog(file)) {
      return log.requests();
    } catch (EOFException e) {
      throw new IOException("%s ends in the middle of a record".formatted(file), e);
    }
  }

  private List<Outcome> requests() throws IOException {
    if (in.read() != 0) {
      throw new IOException("%s is no simulation.log of Gatling 3.13 or newer".formatted(file));
    }
    long beginMs = run();
    List<Outcome> requests = new ArrayList<>();
    for (int record = in.read(); record != -1; record = in.read()) {
      switch (record) {
        case 1 -> requests.add(request(beginMs));
        case 2 -> in.skipNBytes(4 + 1 + 4);
        case 3 -> group();
        case 4 -> error();
        default ->
            throw new IOException("%s: there is no record of kind %d".formatted(file, record));
      }
    }
    return requests;
  }

  private long run() throws IOException {
    String version = string();
    if (!version.startsWith(KNOWN)) {
      throw new IOException(
          "%s was written by Gatling %s; only %sx is known".formatted(file, version, KNOWN));
    }
    string();
    long beginMs = in.readLong();
    string();
    for (int scenarios = in.readInt(); scenarios > 0; scenarios--) {
      string();
    }
    for (int assertions = in.readInt(); assertions > 0; assertions--) {
      in.skipNBytes(length());
    }
    return beginMs;
  }

  private Outcome request(long beginMs) throws IOException {
    groups();
    String name = cachedString();
    long startUs = (beginMs + in.readInt()) * 1_000;
    long endUs = (beginMs + in.readInt()) * 1_000;
    boolean ok = in.readBoolean();
    String message = cachedString();
    return new Outcome(name, null, null, startUs, endUs, ok, 0, message);
  }

  private void group() throws IOException {
    groups();
    in.skipNBytes(3 * 4 + 1);
  }

  private void error() throws IOException {
    cachedString();
    in.skipNBytes(4);
  }

  private void groups() throws IOException {
    for (int groups = in.readInt(); groups > 0; groups--) {
      cachedString();
    }
  }

  private String cachedString() throws IOException {
    int number = in.readInt();
    if (number > 0) {
      String text = string();
      cache.put(number, text);
      return text;
    }
    String text = cache.get(-number);
    if (text == null) {
      throw new IOException("%s: string %d was never written".formatted(file, -number));
    }
    return text;
  }

  private String string() throws IOException {
    int length = length();
    if (length == 0) {
      return "";
    }
    byte[] bytes = in.readNBytes(length);
    boolean latin = in.readByte() == 0;
    // A JVM's strings are in the byte order of the machine that wrote them.
    return new String(bytes, latin ? StandardCharsets.ISO_8859_1 : StandardCharsets.UTF_16LE);
  }

  private int length() throws IOException {
    int length = in.readInt();
    if (length < 0 || length > LONGEST_STRING) {
      throw new IOException("%s: a text of %d bytes".formatted(file, length));
    }
    return length;
  }

  @Override
  public void close() throws IOException {
    in.close();
  }
}

package schedlab.broker;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import kafka.tools.StorageTool;
import org.apache.kafka.common.Uuid;

/** The broker's directory: `server.properties` and, once formatted, `data`. */
record Storage(Path dir) {

  boolean isFormatted() {
    return Files.exists(dir.resolve("data").resolve("meta.properties"));
  }

  /** Writes the settings beside the data, so that what ran can be looked at afterwards. */
  Path write(Properties settings) throws IOException {
    Files.createDirectories(dir);
    Path file = dir.resolve("server.properties");
    try (OutputStream out = Files.newOutputStream(file)) {
      settings.store(out, "written by schedlab.broker.Broker");
    }
    return file;
  }

  /** Kafka's own tool formats; what it says is part of the error. */
  void format(Path settings) throws IOException {
    if (isFormatted()) {
      throw new IOException("%s is formatted already; remove it to begin anew".formatted(dir));
    }
    ByteArrayOutputStream said = new ByteArrayOutputStream();
    String[] arguments = {
      "format", "--config", settings.toString(), "--cluster-id", Uuid.randomUuid().toString()
    };
    int status;
    try (PrintStream out = new PrintStream(said, true, StandardCharsets.UTF_8)) {
      status = StorageTool.execute(arguments, out);
    }
    if (status != 0) {
      throw new IOException(
          "cannot format %s: %s".formatted(dir, said.toString(StandardCharsets.UTF_8).strip()));
    }
  }
}

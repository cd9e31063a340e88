package schedlab.load;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A program in a JVM of its own. */
record Jvm(Process process, Path output) implements AutoCloseable {

  static Jvm start(Path output, String classPath, String... arguments) throws IOException {
    List<String> line = new ArrayList<>();
    line.addAll(List.of("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
    line.addAll(List.of("--add-opens", "java.base/java.lang=ALL-UNNAMED"));
    // No question to anybody else about newer versions, and none kept in the user's home.
    line.addAll(List.of("-Dhttps.proxyHost=127.0.0.1", "-Dhttps.proxyPort=9"));
    line.add("-Djava.util.prefs.userRoot=" + output.toAbsolutePath().getParent());
    line.addAll(List.of("-cp", classPath));
    line.addAll(List.of(arguments));
    return new Jvm(
        new ProcessBuilder(line).redirectErrorStream(true).redirectOutput(output.toFile()).start(),
        output);
  }

  String said() throws IOException {
    return Files.readString(output);
  }

  int await() throws IOException, InterruptedException {
    assertTrue(process.waitFor(3, TimeUnit.MINUTES), "it does not end");
    return process.exitValue();
  }

  @Override
  public void close() {
    process.destroy();
    try {
      if (!process.waitFor(30, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}

package schedlab.load;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.LongStream;

/**
 * Opens the accounts that the load works on. None of its requests is counted. As a program of its
 * own it writes their numbers to {@code bank.accountsFile}, for several runs on one service.
 */
public final class Accounts {

  /** Enough that no account runs dry: a run sends each at most some thousand times 1 000.00. */
  static final String INITIAL_BALANCE = "1000000.00";

  private static final Pattern ID = Pattern.compile("\"id\":(\\d+)");

  private Accounts() {}

  public static void main(String[] arguments) {
    try {
      if (arguments.length != 1) {
        throw new IllegalArgumentException(
            "usage: java [-Dbank.baseUrl=URL] [-Dbank.accounts=N] schedlab.load.Accounts FILE");
      }
      Settings settings = Settings.load();
      long[] accounts = open(settings.baseUrl(), settings.accounts());
      List<String> lines = LongStream.of(accounts).mapToObj(Long::toString).toList();
      Files.write(Path.of(arguments[0]), lines);
      System.out.printf("accounts: opened %d accounts%n", accounts.length);
    } catch (IllegalArgumentException | IOException e) {
      System.err.println("accounts: " + e.getMessage());
      System.exit(1);
    }
  }

  /** The numbers of the accounts for a run: read, or opened now. */
  static long[] of(Settings settings) throws IOException {
    if (settings.accountsFile().isEmpty()) {
      return open(settings.baseUrl(), settings.accounts());
    }
    Path file = settings.accountsFile().get();
    try {
      long[] accounts =
          Files.readAllLines(file).stream()
              .map(String::trim)
              .filter(line -> !line.isEmpty())
              .mapToLong(Long::parseLong)
              .toArray();
      if (accounts.length < 2) {
        throw new IOException("%s has fewer than two accounts".formatted(file));
      }
      return accounts;
    } catch (NumberFormatException e) {
      throw new IOException("%s: not the number of an account: %s".formatted(file, e.getMessage()));
    }
  }

  static long[] open(URI baseUrl, int count) throws IOException {
    HttpClient http =
        HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(Duration.ofSeconds(10))
            .build();
    long[] accounts = new long[count];
    for (int i = 0; i < count; i++) {
      accounts[i] = openAccount(http, baseUrl, i);
    }
    return accounts;
  }

  private static long openAccount(HttpClient http, URI baseUrl, int number) throws IOException {
    String body =
        "{\"owner\":\"customer %d\",\"initialBalance\":%s}".formatted(number, INITIAL_BALANCE);
    HttpRequest request =
        HttpRequest.newBuilder(baseUrl.resolve("/api/accounts"))
            .timeout(Duration.ofSeconds(60))
            .header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString(body))
            .build();
    HttpResponse<String> answer;
    try {
      answer = http.send(request, BodyHandlers.ofString());
    } catch (IOException e) {
      throw new IOException("%s does not answer: %s".formatted(baseUrl, e), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    }
    Matcher id = ID.matcher(answer.body());
    if (answer.statusCode() != 201 || !id.find()) {
      throw new IOException(
          "%s opened no account: status %d, %s"
              .formatted(baseUrl, answer.statusCode(), answer.body()));
    }
    return Long.parseLong(id.group(1));
  }
}

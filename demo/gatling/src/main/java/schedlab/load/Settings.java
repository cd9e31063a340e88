package schedlab.load;

import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeSet;

/**
 * Settings of a run: system properties that begin with {@code bank.}, or variables of the
 * environment ({@code BANK_WARM_UP} for {@code bank.warmUp}); the former win.
 *
 * @param baseUrl where the service listens
 * @param rate factor of all rates of the published run
 * @param warmUp seconds at the steady rate before the profile begins; they are not counted
 * @param ramp seconds of the ramp up, and of the ramp down
 * @param steady seconds at the steady rate
 * @param spread whether the scenarios begin one after the other; they begin together in the
 *     published run, so that requests of several come at once
 * @param seed of amounts and accounts
 * @param suspiciousShare share of transfers and fraud checks whose amount is suspicious
 * @param rangeSize up to where primes are searched
 * @param accounts how many accounts the set-up opens
 * @param accountsFile numbers of accounts that a set-up has opened before; none: open them now
 * @param log where each request is written down
 */
record Settings(
    URI baseUrl,
    double rate,
    int warmUp,
    int ramp,
    int steady,
    boolean spread,
    long seed,
    double suspiciousShare,
    int rangeSize,
    int accounts,
    Optional<Path> accountsFile,
    Path log) {

  private static final Map<String, String> DEFAULTS = defaults();

  private static Map<String, String> defaults() {
    Map<String, String> defaults = new LinkedHashMap<>();
    defaults.put("baseUrl", "http://127.0.0.1:8080");
    defaults.put("rate", "1");
    defaults.put("steadyRate", "");
    defaults.put("warmUp", "0");
    defaults.put("ramp", "30");
    defaults.put("steady", "120");
    defaults.put("duration", "");
    defaults.put("spread", "false");
    defaults.put("seed", "1");
    defaults.put("suspiciousShare", "0.05");
    defaults.put("rangeSize", "100000");
    defaults.put("accounts", "200");
    defaults.put("accountsFile", "");
    defaults.put("log", "requests.csv");
    return defaults;
  }

  static Settings load() {
    return of(System.getProperties(), System.getenv());
  }

  static Settings of(Properties properties, Map<String, String> environment) {
    refuseUnknown(properties);
    Source source = new Source(properties, environment);
    String file = source.text("accountsFile");
    int ramp = source.ramp();
    Settings settings =
        new Settings(
            source.url("baseUrl"),
            source.rate(),
            source.whole("warmUp", 0, 86_400),
            ramp,
            source.steady(ramp),
            source.truth("spread"),
            source.seed("seed"),
            source.real("suspiciousShare", 0, 1),
            source.whole("rangeSize", 1, 10_000_000),
            source.whole("accounts", 2, 1_000_000),
            file.isEmpty() ? Optional.empty() : Optional.of(Path.of(file)),
            Path.of(source.text("log")));
    settings.check();
    return settings;
  }

  /** A misspelt property would be a run with other settings than its owner believes. */
  private static void refuseUnknown(Properties properties) {
    for (String name : new TreeSet<>(properties.stringPropertyNames())) {
      if (name.startsWith("bank.") && !DEFAULTS.containsKey(name.substring(5))) {
        throw new IllegalArgumentException(
            "%s is unknown; there are bank.%s"
                .formatted(name, String.join(", bank.", DEFAULTS.keySet())));
      }
    }
  }

  private void check() {
    if (2 * ramp + steady == 0) {
      throw new IllegalArgumentException("bank.ramp and bank.steady are both 0: nothing to do");
    }
    if (Files.isDirectory(log)) {
      throw new IllegalArgumentException(
          "bank.log must be a file, and '%s' is a directory".formatted(log));
    }
    accountsFile.ifPresent(
        file -> {
          if (Files.isDirectory(file) || !Files.isReadable(file)) {
            throw new IllegalArgumentException("bank.accountsFile: cannot read " + file);
          }
        });
  }

  private record Source(Properties properties, Map<String, String> environment) {

    String text(String name) {
      String fallback = environment.getOrDefault(variable(name), DEFAULTS.get(name));
      return properties.getProperty("bank." + name, fallback).trim();
    }

    private static String variable(String name) {
      return "BANK_" + name.replaceAll("([A-Z])", "_$1").toUpperCase(Locale.ROOT);
    }

    /** The factor of all rates, which may also be told as the rate that it makes. */
    double rate() {
      if (!isGiven("steadyRate")) {
        return real("rate", 0.001, 1_000);
      }
      refuseBoth("steadyRate", "rate");
      return real("steadyRate", 0.1, 100_000) / Kind.steadyRate();
    }

    /** Of a profile whose length is told, a sixth is the ramp up and a sixth the ramp down. */
    int ramp() {
      if (!isGiven("duration")) {
        return whole("ramp", 0, 86_400);
      }
      refuseBoth("duration", "ramp");
      return whole("duration", 1, 86_400) / 6;
    }

    int steady(int ramp) {
      if (!isGiven("duration")) {
        return whole("steady", 0, 86_400);
      }
      refuseBoth("duration", "steady");
      return whole("duration", 1, 86_400) - 2 * ramp;
    }

    private boolean isGiven(String name) {
      return !text(name).equals(DEFAULTS.get(name));
    }

    private void refuseBoth(String name, String other) {
      if (isGiven(other)) {
        throw new IllegalArgumentException(
            "bank.%s and bank.%s say the same thing: leave one out".formatted(name, other));
      }
    }

    int whole(String name, int least, int most) {
      try {
        int number = Integer.parseInt(text(name));
        if (number >= least && number <= most) {
          return number;
        }
      } catch (NumberFormatException e) {
        // It is reported below, together with what is out of range.
      }
      throw wrong(name, "a whole number from %d to %d".formatted(least, most));
    }

    double real(String name, double least, double most) {
      try {
        String text = text(name);
        double number = Double.parseDouble(text);
        // Java's own notations are no numbers to anybody else: 1d, 0x1p3.
        if (text.matches("[-+.0-9eE]+") && number >= least && number <= most) {
          return number;
        }
      } catch (NumberFormatException e) {
        // It is reported below, together with what is out of range.
      }
      throw wrong(name, "a number from %s to %s".formatted(least, most));
    }

    boolean truth(String name) {
      return switch (text(name)) {
        case "true" -> true;
        case "false" -> false;
        default -> throw wrong(name, "true or false");
      };
    }

    long seed(String name) {
      try {
        return Long.parseLong(text(name));
      } catch (NumberFormatException e) {
        throw wrong(name, "a whole number");
      }
    }

    URI url(String name) {
      String text = text(name);
      try {
        URI url = new URI(text);
        boolean isPort = url.getPort() != 0 && url.getPort() <= 65_535;
        if (text.matches("https?://[^/?#\\s]+") && url.getHost() != null && isPort) {
          return url;
        }
      } catch (URISyntaxException e) {
        // It is reported below, together with what is no address of a service.
      }
      throw wrong(name, "a URL without path, such as http://127.0.0.1:8080");
    }

    /** The setting is called what its owner called it. */
    private IllegalArgumentException wrong(String name, String wanted) {
      String property = "bank." + name;
      boolean isOfEnvironment =
          properties.getProperty(property) == null && environment.containsKey(variable(name));
      String called = isOfEnvironment ? variable(name) : property;
      return new IllegalArgumentException(
          "%s must be %s, not '%s'".formatted(called, wanted, text(name)));
    }
  }
}

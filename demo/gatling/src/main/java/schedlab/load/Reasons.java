package schedlab.load;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.IThrowableProxy;
import ch.qos.logback.core.AppenderBase;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.LoggerFactory;

/**
 * Reasons for which requests have no answer. Gatling lets a simulation know only that there is
 * none; what happened is in its own log of the HTTP client ({@code Request 'NAME' failed for user
 * NUMBER}, and the exception), silent requests included. So this listens to that log. Each user has
 * one request, so the user's number is enough to find it.
 */
final class Reasons extends AppenderBase<ILoggingEvent> {

  /** The class that writes that log; its companion, whose name ends with a dollar, is below it. */
  static final String LOGGER = "io.gatling.http.engine.GatlingHttpListener";

  private static final Pattern FAILED = Pattern.compile("failed for user (\\d+)$");

  /** What an exception's class or message contains, and what we call it; the first one counts. */
  private static final Map<String, String> WORDS = words();

  private static Map<String, String> words() {
    Map<String, String> words = new LinkedHashMap<>();
    // The first two are limits of this process, and no fault of the service.
    words.put("Too many open files", "too many open files of the load");
    words.put("Cannot assign requested address", "no free port of the load");
    words.put("Connection refused", "refused");
    words.put("TimeoutException", "timed out");
    words.put("Connection timed out", "timed out");
    // Which of these it is depends on who was faster.
    words.put("Premature close", "closed");
    words.put("Connection reset", "closed");
    words.put("Broken pipe", "closed");
    words.put("ClosedChannelException", "closed");
    return words;
  }

  private final Map<Long, String> byUser = new ConcurrentHashMap<>();

  private Reasons() {}

  /** Listens from now on. */
  static Reasons listen() {
    Reasons reasons = new Reasons();
    if (LoggerFactory.getLogger(LOGGER) instanceof Logger log) {
      reasons.setContext(log.getLoggerContext());
      reasons.start();
      // Nobody sees more on the console than was asked for.
      log.setAdditive(log.isDebugEnabled());
      log.setLevel(Level.DEBUG);
      log.addAppender(reasons);
    }
    return reasons;
  }

  @Override
  protected void append(ILoggingEvent event) {
    Matcher user = FAILED.matcher(event.getFormattedMessage());
    if (event.getThrowableProxy() != null && user.find()) {
      byUser.put(Long.valueOf(user.group(1)), reason(event.getThrowableProxy()));
    }
  }

  /** Why this user's request has no answer, told once; empty where Gatling gave no reason. */
  String take(long user) {
    String reason = byUser.remove(user);
    return reason == null ? "" : reason;
  }

  /** A known reason of any of the causes, else the class of the last one. */
  private static String reason(IThrowableProxy thrown) {
    IThrowableProxy last = thrown;
    for (IThrowableProxy cause = thrown; cause != null; cause = cause.getCause()) {
      String told = cause.getClassName() + ": " + cause.getMessage();
      for (Map.Entry<String, String> word : WORDS.entrySet()) {
        if (told.contains(word.getKey())) {
          return word.getValue();
        }
      }
      last = cause;
    }
    String name = last.getClassName();
    return name.substring(Math.max(name.lastIndexOf('.'), name.lastIndexOf('$')) + 1);
  }
}

package schedlab.load;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import java.nio.channels.ClosedChannelException;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

class ReasonsTest {

  /** As Gatling logs it: by the companion of the class, with the user's number in the text. */
  private static void fail(long user, Throwable thrown) {
    LoggerFactory.getLogger(Reasons.LOGGER + "$")
        .debug("Request 'Get Balance' failed for user " + user, thrown);
  }

  private static String reasonOf(Throwable thrown) {
    Reasons reasons = Reasons.listen();
    fail(7, thrown);
    return reasons.take(7);
  }

  @Test
  void too_many_open_files_are_told_as_the_loads_however_deep_they_are() {
    String reason = "too many open files of the load";
    assertEquals(reason, reasonOf(new SocketException("Too many open files")));
    Exception system = new IOException("newSocketStream(..) failed: Too many open files");
    Exception netty = new IllegalStateException("Unable to create Channel", system);
    assertEquals(reason, reasonOf(netty));
    assertEquals(
        "no free port of the load",
        reasonOf(new IOException("bind(..) failed: Cannot assign requested address")));
  }

  @Test
  void what_a_server_does_has_one_word_whatever_the_system_calls_it() {
    assertEquals("refused", reasonOf(new ConnectException("Connection refused: /127.0.0.1:80")));
    assertEquals("timed out", reasonOf(new TimeoutException("Request timeout after 60000 ms")));
    assertEquals("timed out", reasonOf(new ConnectException("Connection timed out")));
    assertEquals("closed", reasonOf(new IOException("Premature close")));
    assertEquals("closed", reasonOf(new SocketException("Connection reset")));
    assertEquals("closed", reasonOf(new IOException("writev(..) failed: Broken pipe")));
    assertEquals("closed", reasonOf(new ClosedChannelException()));
  }

  @Test
  void an_unknown_reason_is_the_class_of_the_last_cause() {
    Exception cause = new ArithmeticException("1, 2 or 3");
    assertEquals("ArithmeticException", reasonOf(new IOException("strange", cause)));
  }

  @Test
  void a_reason_is_its_users_and_is_told_once() {
    Reasons reasons = Reasons.listen();
    fail(1, new ConnectException("Connection refused"));
    fail(12, new IOException("Premature close"));
    assertEquals("", reasons.take(2));
    assertEquals("refused", reasons.take(1));
    assertEquals("", reasons.take(1));
    assertEquals("closed", reasons.take(12));
  }
}

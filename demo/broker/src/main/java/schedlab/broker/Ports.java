package schedlab.broker;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;

/** The three ports, checked before anything is written: Kafka would fail halfway. */
final class Ports {

  private Ports() {}

  static void checkFree(Options options) throws IOException {
    checkFree("--port", options.port());
    checkFree("--controller-port", options.controllerPort());
    checkFree("--health-port", options.healthPort());
  }

  private static void checkFree(String option, int port) throws IOException {
    try (ServerSocket socket = new ServerSocket()) {
      socket.setReuseAddress(true);
      socket.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
    } catch (BindException e) {
      throw new IOException(
          "port %d of 127.0.0.1 is taken; give another one with %s".formatted(port, option));
    }
  }
}

package schedlab.bank;

import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.env.EnvironmentPostProcessor;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.MapPropertySource;

/**
 * Sizes of the pools, from the number of CPUs that the JVM sees.
 *
 * @param requests threads that answer requests; most of them wait for a connection or a lock
 * @param connections connections to the database, which does its work in the caller's thread
 * @param compute threads for compute work: one for each CPU, more would only take turns
 * @param consumers consumers of the topic {@code transactions}, which has four partitions
 */
public record PoolSizes(int requests, int connections, int compute, int consumers) {

  public static PoolSizes of(int cpus) {
    return new PoolSizes(16 * cpus, 2 * cpus + 1, cpus, Math.min(cpus, 4));
  }

  private Map<String, Object> properties() {
    return Map.of(
        "server.tomcat.threads.max", requests,
        "server.tomcat.threads.min-spare", Math.min(10, requests),
        "spring.datasource.hikari.maximum-pool-size", connections,
        "bank.compute.threads", compute,
        "bank.events.consumers", consumers);
  }

  /** Puts the sizes behind all other settings, so that any of them can be given by hand. */
  public static class Defaults implements EnvironmentPostProcessor {
    @Override
    public void postProcessEnvironment(
        ConfigurableEnvironment environment, SpringApplication application) {
      PoolSizes sizes = PoolSizes.of(Runtime.getRuntime().availableProcessors());
      environment
          .getPropertySources()
          .addLast(new MapPropertySource("poolSizes", sizes.properties()));
    }
  }
}

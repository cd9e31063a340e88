package schedlab.bank.compute;

import jakarta.annotation.PreDestroy;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/**
 * The threads for compute work, one for each CPU by default. A request hands in its parts and waits
 * for all of them; how a request is cut into parts never depends on the number of threads, so the
 * work and its result are the same on every machine.
 */
@Component
public class ComputePool {

  private final ExecutorService threads;

  public ComputePool(@Value("${bank.compute.threads}") int size) {
    AtomicInteger number = new AtomicInteger();
    threads =
        Executors.newFixedThreadPool(
            size, work -> new Thread(work, "compute-" + number.incrementAndGet()));
  }

  /** The results of parts 0 to {@code parts} - 1, in that order. */
  public <T> List<T> inParts(int parts, IntFunction<T> part) {
    List<Callable<T>> calls =
        IntStream.range(0, parts).<Callable<T>>mapToObj(i -> () -> part.apply(i)).toList();
    try {
      return threads.invokeAll(calls).stream().map(ComputePool::result).toList();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("the service is stopping", e);
    }
  }

  private static <T> T result(Future<T> done) {
    try {
      return done.get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("the service is stopping", e);
    } catch (ExecutionException e) {
      throw new IllegalStateException("compute work failed", e.getCause());
    }
  }

  @PreDestroy
  public void stop() {
    threads.shutdownNow();
  }
}

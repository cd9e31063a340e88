package schedlab.bank.primes;

import java.util.List;
import org.springframework.stereotype.Service;
import schedlab.bank.compute.ComputePool;

/**
 * Counts the primes up to a number by trial division, in parts on all compute threads. There are
 * far better ways; this one is work of a known amount, and its result is known too.
 */
@Service
class PrimeSearch {

  static final int PARTS = 16;

  private final ComputePool pool;

  PrimeSearch(ComputePool pool) {
    this.pool = pool;
  }

  /** The number of primes and the largest of them; 0 where there is none. */
  record Primes(int count, int largest) {
    Primes plus(Primes later) {
      return new Primes(count + later.count, Math.max(largest, later.largest));
    }
  }

  /** The primes from 2 to {@code rangeSize}. */
  Primes upTo(int rangeSize) {
    List<Primes> parts =
        pool.inParts(PARTS, part -> between(bound(rangeSize, part), bound(rangeSize, part + 1)));
    return parts.stream().reduce(new Primes(0, 0), Primes::plus);
  }

  /** Parts are equally long; those further up cost more, as in real distributed work. */
  private static int bound(int rangeSize, int part) {
    return (int) ((long) rangeSize * part / PARTS);
  }

  /** The primes above {@code after}, up to {@code last}. */
  private static Primes between(int after, int last) {
    int count = 0;
    int largest = 0;
    for (int n = Math.max(after + 1, 2); n <= last; n++) {
      if (isPrime(n)) {
        count++;
        largest = n;
      }
    }
    return new Primes(count, largest);
  }

  private static boolean isPrime(int n) {
    if (n % 2 == 0) {
      return n == 2;
    }
    for (int d = 3; d * d <= n; d += 2) {
      if (n % d == 0) {
        return false;
      }
    }
    return true;
  }
}

package schedlab.bank.primes;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import schedlab.bank.compute.ComputePool;

class PrimeSearchTest {

  private static PrimeSearch.Primes search(int rangeSize, int threads) {
    ComputePool pool = new ComputePool(threads);
    try {
      return new PrimeSearch(pool).upTo(rangeSize);
    } finally {
      pool.stop();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "1, 0, 0",
    "2, 1, 2",
    "3, 2, 3",
    "16, 6, 13",
    "100, 25, 97",
    "1000, 168, 997",
    "100000, 9592, 99991"
  })
  void the_primes_are_those_of_the_tables(int rangeSize, int count, int largest) {
    assertThat(search(rangeSize, 2)).isEqualTo(new PrimeSearch.Primes(count, largest));
  }

  @Test
  void the_number_of_threads_changes_nothing() {
    assertThat(search(12_345, 1)).isEqualTo(search(12_345, 7));
  }
}

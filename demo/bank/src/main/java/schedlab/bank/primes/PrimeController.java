package schedlab.bank.primes;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import schedlab.bank.accounts.Accounts;
import schedlab.bank.web.InvalidRequestException;

/** Compute work on behalf of an account. */
@RestController
class PrimeController {

  private final Accounts accounts;
  private final PrimeSearch search;
  private final int largestRange;

  PrimeController(
      Accounts accounts,
      PrimeSearch search,
      @Value("${bank.primes.largest-range}") int largestRange) {
    this.accounts = accounts;
    this.search = search;
    this.largestRange = largestRange;
  }

  record PrimesView(long accountId, int rangeSize, int primes, int largest, int parts) {}

  @GetMapping("/api/accounts/{id}/distributed-prime-search")
  PrimesView search(@PathVariable long id, @RequestParam int rangeSize) {
    if (rangeSize < 1 || rangeSize > largestRange) {
      throw new InvalidRequestException(
          "rangeSize must be from 1 to %d, not %d".formatted(largestRange, rangeSize));
    }
    accounts.find(id);
    PrimeSearch.Primes primes = search.upTo(rangeSize);
    return new PrimesView(id, rangeSize, primes.count(), primes.largest(), PrimeSearch.PARTS);
  }
}

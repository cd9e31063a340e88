package schedlab.load;

import java.util.SplittableRandom;

/**
 * Content of one request. The k-th user of a scenario draws the same in every run with the same
 * seed, whatever the other users do.
 *
 * @param sender index of an account
 * @param receiver index of another account
 * @param amountCents what is sent or asked about
 * @param suspicious whether the service must refuse that amount
 */
record Draw(int sender, int receiver, long amountCents, boolean suspicious) {

  /** The service passes everything below 4 000.00, however unusual it is otherwise. */
  static final long LARGEST_ORDINARY_CENTS = 1_000_00;

  /** The service refuses everything from here on, however usual it is otherwise. */
  static final long SMALLEST_SUSPICIOUS_CENTS = 20_000_00;

  static final long LARGEST_SUSPICIOUS_CENTS = 50_000_00;

  /** The draws of one scenario. */
  static final class Stream {
    private final long base;
    private final int accounts;
    private final double suspiciousShare;

    Stream(Settings settings, int accounts, Kind kind, boolean warmUp) {
      // A far point of a stream of its own for each seed and scenario.
      long key = settings.seed() * 2 * Kind.values().length + 2 * kind.ordinal();
      base = new SplittableRandom(warmUp ? key + 1 : key).nextLong();
      this.accounts = accounts;
      suspiciousShare = settings.suspiciousShare();
    }

    Draw at(long k) {
      SplittableRandom random = new SplittableRandom(base + k);
      int sender = random.nextInt(accounts);
      int receiver = (sender + 1 + random.nextInt(accounts - 1)) % accounts;
      boolean suspicious = random.nextDouble() < suspiciousShare;
      long amount =
          suspicious
              ? random.nextLong(SMALLEST_SUSPICIOUS_CENTS, LARGEST_SUSPICIOUS_CENTS + 1)
              : random.nextLong(1, LARGEST_ORDINARY_CENTS + 1);
      return new Draw(sender, receiver, amount, suspicious);
    }
  }

  /** The amount as the service reads it. */
  String amount() {
    return "%d.%02d".formatted(amountCents / 100, amountCents % 100);
  }
}

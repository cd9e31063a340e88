package schedlab.bank.transactions;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * How often a transfer is tried that met a lock, and how long it pauses between.
 *
 * @param attempts how often in all
 * @param firstPause the longest pause after the first attempt; each further one doubles it
 * @param longestPause what the pauses do not go beyond
 */
@ConfigurationProperties("bank.transfers")
record TransferRules(int attempts, Duration firstPause, Duration longestPause) {}

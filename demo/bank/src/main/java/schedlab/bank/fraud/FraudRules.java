package schedlab.bank.fraud;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * When a transfer is refused.
 *
 * @param threshold the lowest score that is refused, of 100
 * @param window how far back the sender's transfers are counted
 */
@ConfigurationProperties("bank.fraud")
public record FraudRules(int threshold, Duration window) {}

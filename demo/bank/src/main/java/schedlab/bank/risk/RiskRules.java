package schedlab.bank.risk;

import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * The amount of work of an analysis.
 *
 * @param paths how many futures are simulated
 * @param days how many days each of them has
 */
@ConfigurationProperties("bank.risk")
record RiskRules(int paths, int days) {}

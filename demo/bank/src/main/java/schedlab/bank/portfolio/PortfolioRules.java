package schedlab.bank.portfolio;

import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * The amount of work of an optimization.
 *
 * @param assets how many assets there are to choose from
 * @param days how many daily returns each of them has
 * @param iterations how many steps the ascent takes
 */
@ConfigurationProperties("bank.portfolio")
record PortfolioRules(int assets, int days, int iterations) {}

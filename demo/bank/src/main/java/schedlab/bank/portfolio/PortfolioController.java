package schedlab.bank.portfolio;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import schedlab.bank.accounts.Accounts;

/** How an account's money could be invested. */
@RestController
class PortfolioController {

  private final Accounts accounts;
  private final PortfolioOptimization optimization;
  private final PortfolioRules rules;

  PortfolioController(Accounts accounts, PortfolioOptimization optimization, PortfolioRules rules) {
    this.accounts = accounts;
    this.optimization = optimization;
    this.rules = rules;
  }

  record PortfolioView(
      long accountId,
      int days,
      int iterations,
      double expectedReturn,
      double volatility,
      double[] weights) {}

  @GetMapping("/api/accounts/{id}/portfolio-optimization")
  PortfolioView optimize(@PathVariable long id) {
    accounts.find(id);
    PortfolioOptimization.Portfolio best = optimization.of(id);
    return new PortfolioView(
        id,
        rules.days(),
        rules.iterations(),
        best.expectedReturn(),
        StrictMath.sqrt(best.variance()),
        best.weights());
  }
}

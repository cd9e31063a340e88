package schedlab.bank.risk;

import java.math.BigDecimal;
import java.math.RoundingMode;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import schedlab.bank.accounts.Accounts;
import schedlab.bank.money.Money;

/** Answers how much an account may lose. */
@RestController
class RiskController {

  private final Accounts accounts;
  private final RiskAnalysis analysis;
  private final RiskRules rules;

  RiskController(Accounts accounts, RiskAnalysis analysis, RiskRules rules) {
    this.accounts = accounts;
    this.analysis = analysis;
    this.rules = rules;
  }

  record RiskView(
      long accountId,
      Money balance,
      int paths,
      int days,
      double meanReturn,
      Money valueAtRisk,
      Money expectedShortfall) {}

  @GetMapping("/api/accounts/{id}/risk-analysis")
  RiskView analyse(@PathVariable long id) {
    Money balance = accounts.find(id).balance();
    RiskAnalysis.Risk risk = analysis.of(id);
    return new RiskView(
        id,
        balance,
        rules.paths(),
        rules.days(),
        risk.meanReturn(),
        share(balance, risk.valueAtRisk()),
        share(balance, risk.expectedShortfall()));
  }

  private static Money share(Money balance, double share) {
    BigDecimal exact = balance.toDecimal().multiply(BigDecimal.valueOf(share));
    return Money.of(exact.setScale(2, RoundingMode.HALF_EVEN));
  }
}

package schedlab.bank.fraud;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import schedlab.bank.money.Money;
import schedlab.bank.web.InvalidRequestException;

/** Answers how a transfer of an amount would be judged, without making it. */
@RestController
class FraudController {

  private final FraudCheck check;

  FraudController(FraudCheck check) {
    this.check = check;
  }

  record FraudView(
      long accountId,
      Money amount,
      int score,
      int threshold,
      boolean suspicious,
      FraudScore points) {}

  @GetMapping("/api/accounts/{id}/fraud-check")
  FraudView check(@PathVariable long id, @RequestParam Money amount) {
    if (!amount.isPositive()) {
      throw new InvalidRequestException("amount must be positive");
    }
    FraudScore score = check.score(id, amount);
    return new FraudView(
        id, amount, score.total(), check.threshold(), check.isSuspicious(score.total()), score);
  }
}

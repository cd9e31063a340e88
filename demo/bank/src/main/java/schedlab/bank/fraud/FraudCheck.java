package schedlab.bank.fraud;

import java.time.Clock;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;
import schedlab.bank.accounts.Account;
import schedlab.bank.accounts.Accounts;
import schedlab.bank.money.Money;

/** Judges a transfer before it is made. */
@Service
public class FraudCheck {

  private final Accounts accounts;
  private final FraudRules rules;
  private final Clock clock;

  FraudCheck(Accounts accounts, FraudRules rules, Clock clock) {
    this.accounts = accounts;
    this.rules = rules;
    this.clock = clock;
  }

  @Transactional(readOnly = true)
  public FraudScore score(long senderId, Money amount) {
    return score(accounts.find(senderId), amount);
  }

  public FraudScore score(Account sender, Money amount) {
    int recent = accounts.countSent(sender.id(), clock.instant().minus(rules.window()));
    return FraudScore.of(amount, sender.balance(), recent);
  }

  public boolean isSuspicious(int score) {
    return score >= rules.threshold();
  }

  public int threshold() {
    return rules.threshold();
  }
}

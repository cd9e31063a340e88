package schedlab.bank.accounts;

import java.util.Map;
import org.springframework.http.HttpStatus;
import schedlab.bank.web.ProblemException;

/** The account has less than what is to be withdrawn. */
public class InsufficientFundsException extends ProblemException {

  public InsufficientFundsException(long accountId) {
    super(
        HttpStatus.CONFLICT,
        "insufficient-funds",
        "Insufficient funds",
        "Account %d has not enough money.".formatted(accountId),
        Map.of("accountId", accountId));
  }
}

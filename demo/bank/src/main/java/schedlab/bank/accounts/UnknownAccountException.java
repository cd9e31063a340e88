package schedlab.bank.accounts;

import java.util.Map;
import org.springframework.http.HttpStatus;
import schedlab.bank.web.ProblemException;

/** There is no account of this number. */
public class UnknownAccountException extends ProblemException {

  public UnknownAccountException(long accountId) {
    super(
        HttpStatus.NOT_FOUND,
        "unknown-account",
        "Unknown account",
        "There is no account %d.".formatted(accountId),
        Map.of("accountId", accountId));
  }
}

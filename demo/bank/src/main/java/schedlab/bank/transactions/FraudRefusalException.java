package schedlab.bank.transactions;

import java.util.Map;
import org.springframework.http.HttpStatus;
import schedlab.bank.web.ProblemException;

/** The transfer was refused because it is suspicious. The refusal itself is recorded. */
class FraudRefusalException extends ProblemException {

  FraudRefusalException(Transaction refused, int threshold) {
    super(
        HttpStatus.UNPROCESSABLE_ENTITY,
        "fraud-refused",
        "Refused as suspicious",
        "The transfer scores %d, and from %d on it is refused."
            .formatted(refused.fraudScore(), threshold),
        Map.of(
            "transactionId", refused.id(),
            "score", refused.fraudScore(),
            "threshold", threshold));
  }
}

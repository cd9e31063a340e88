package schedlab.bank.web;

import java.util.Map;
import org.springframework.http.HttpStatus;

/** A request that is well-formed but makes no sense; the detail says why. */
public class InvalidRequestException extends ProblemException {

  public InvalidRequestException(String detail) {
    super(HttpStatus.BAD_REQUEST, "invalid-request", "Invalid request", detail, Map.of());
  }
}

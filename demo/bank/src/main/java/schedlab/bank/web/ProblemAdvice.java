package schedlab.bank.web;

import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.TypeMismatchException;
import org.springframework.context.MessageSourceResolvable;
import org.springframework.dao.TransientDataAccessException;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.ProblemDetail;
import org.springframework.http.ResponseEntity;
import org.springframework.http.converter.HttpMessageNotReadableException;
import org.springframework.transaction.CannotCreateTransactionException;
import org.springframework.web.bind.MethodArgumentNotValidException;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.context.request.WebRequest;
import org.springframework.web.method.annotation.HandlerMethodValidationException;
import org.springframework.web.servlet.mvc.method.annotation.ResponseEntityExceptionHandler;
import schedlab.bank.money.InvalidAmountException;

/** Every failure is answered with a problem document that says what was wrong. */
@RestControllerAdvice
class ProblemAdvice extends ResponseEntityExceptionHandler {

  private static final Logger LOG = LoggerFactory.getLogger(ProblemAdvice.class);

  @ExceptionHandler
  ProblemDetail problem(ProblemException e) {
    return e.problem();
  }

  /** Locked for too long, or no connection to the database in time: a matter of load. */
  @ExceptionHandler({TransientDataAccessException.class, CannotCreateTransactionException.class})
  ResponseEntity<ProblemDetail> busy(Exception e) {
    ProblemDetail problem =
        ProblemException.problem(
            HttpStatus.SERVICE_UNAVAILABLE, "busy", "Busy", "Try again later.");
    return ResponseEntity.status(HttpStatus.SERVICE_UNAVAILABLE)
        .header(HttpHeaders.RETRY_AFTER, "1")
        .body(problem);
  }

  /** A fault of ours: the log has it, the answer has no details of it. */
  @ExceptionHandler
  ProblemDetail fault(Exception e) {
    LOG.error("a request failed", e);
    return ProblemException.problem(
        HttpStatus.INTERNAL_SERVER_ERROR, "fault", "Fault", "The service made a mistake.");
  }

  private static ProblemDetail invalid(String detail) {
    return ProblemException.problem(
        HttpStatus.BAD_REQUEST, "invalid-request", "Invalid request", detail);
  }

  @Override
  protected ResponseEntity<Object> handleMethodArgumentNotValid(
      MethodArgumentNotValidException e,
      HttpHeaders headers,
      HttpStatusCode status,
      WebRequest request) {
    String detail =
        e.getBindingResult().getFieldErrors().stream()
            .map(error -> error.getField() + " " + error.getDefaultMessage())
            .sorted()
            .collect(Collectors.joining("; "));
    return handleExceptionInternal(e, invalid(detail), headers, status, request);
  }

  @Override
  protected ResponseEntity<Object> handleHandlerMethodValidationException(
      HandlerMethodValidationException e,
      HttpHeaders headers,
      HttpStatusCode status,
      WebRequest request) {
    String detail =
        e.getParameterValidationResults().stream()
            .map(
                result ->
                    result.getMethodParameter().getParameterName()
                        + " "
                        + result.getResolvableErrors().stream()
                            .map(MessageSourceResolvable::getDefaultMessage)
                            .collect(Collectors.joining(", ")))
            .collect(Collectors.joining("; "));
    return handleExceptionInternal(e, invalid(detail), headers, status, request);
  }

  @Override
  protected ResponseEntity<Object> handleTypeMismatch(
      TypeMismatchException e, HttpHeaders headers, HttpStatusCode status, WebRequest request) {
    String detail = "%s cannot be '%s'".formatted(e.getPropertyName(), e.getValue());
    return handleExceptionInternal(e, invalid(detail + because(e)), headers, status, request);
  }

  @Override
  protected ResponseEntity<Object> handleHttpMessageNotReadable(
      HttpMessageNotReadableException e,
      HttpHeaders headers,
      HttpStatusCode status,
      WebRequest request) {
    String detail = "The body cannot be read" + because(e);
    return handleExceptionInternal(e, invalid(detail), headers, status, request);
  }

  /** The reason where it is one of ours; a library's tells about its classes. */
  private static String because(Exception e) {
    for (Throwable cause = e; cause != null; cause = cause.getCause()) {
      if (cause instanceof InvalidAmountException) {
        return ": " + cause.getMessage();
      }
    }
    return "";
  }
}

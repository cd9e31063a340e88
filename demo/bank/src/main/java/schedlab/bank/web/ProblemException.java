package schedlab.bank.web;

import java.net.URI;
import java.util.Map;
import org.springframework.http.HttpStatus;
import org.springframework.http.ProblemDetail;

/** A failure that the caller is told about with a problem document (RFC 9457). */
public abstract class ProblemException extends RuntimeException {

  private final transient ProblemDetail problem;

  /**
   * @param name the last part of the problem's type, which is a name and no address
   * @param properties what a program may want to know beside the sentence for people
   */
  protected ProblemException(
      HttpStatus status, String name, String title, String detail, Map<String, ?> properties) {
    super(detail);
    problem = problem(status, name, title, detail);
    properties.forEach(problem::setProperty);
  }

  ProblemDetail problem() {
    return problem;
  }

  static ProblemDetail problem(HttpStatus status, String name, String title, String detail) {
    ProblemDetail problem = ProblemDetail.forStatusAndDetail(status, detail);
    problem.setType(URI.create("urn:bank:" + name));
    problem.setTitle(title);
    return problem;
  }
}

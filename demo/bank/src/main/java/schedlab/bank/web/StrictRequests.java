package schedlab.bank.web;

import com.fasterxml.jackson.databind.cfg.CoercionAction;
import com.fasterxml.jackson.databind.cfg.CoercionInputShape;
import com.fasterxml.jackson.databind.type.LogicalType;
import java.io.IOException;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.core.StandardHost;
import org.apache.catalina.valves.ErrorReportValve;
import org.springframework.boot.autoconfigure.jackson.Jackson2ObjectMapperBuilderCustomizer;
import org.springframework.boot.web.embedded.tomcat.TomcatServletWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;

/** What Spring's settings leave open: wrong requests that would pass, or get no problem document. */
@Configuration
class StrictRequests {

  /** A text is a text: 5 is no name of an owner. */
  @Bean
  Jackson2ObjectMapperBuilderCustomizer textsOnly() {
    return builder ->
        builder.postConfigurer(
            mapper ->
                mapper
                    .coercionConfigFor(LogicalType.Textual)
                    .setCoercion(CoercionInputShape.Integer, CoercionAction.Fail)
                    .setCoercion(CoercionInputShape.Float, CoercionAction.Fail)
                    .setCoercion(CoercionInputShape.Boolean, CoercionAction.Fail));
  }

  /** Requests that Tomcat itself refuses, before there is a path that could be served. */
  @Bean
  WebServerFactoryCustomizer<TomcatServletWebServerFactory> problemsOfTomcat() {
    return factory ->
        factory.addContextCustomizers(
            context -> {
              if (context.getParent() instanceof StandardHost host) {
                host.setErrorReportValveClass(ProblemReport.class.getName());
              }
            });
  }

  /** Writes a problem document where Tomcat would write a page. */
  public static final class ProblemReport extends ErrorReportValve {

    @Override
    protected void report(Request request, Response response, Throwable throwable) {
      int status = response.getStatus();
      if (status < 400 || response.getContentWritten() > 0 || !response.setErrorReported()) {
        return;
      }
      boolean ours = status >= 500;
      HttpStatus known = HttpStatus.resolve(status);
      String refusal = known == null ? "Bad Request" : known.getReasonPhrase();
      String problem =
          "{\"type\":\"urn:bank:%s\",\"title\":\"%s\",\"status\":%d,\"detail\":\"%s\"}"
              .formatted(
                  ours ? "fault" : "invalid-request",
                  ours ? "Fault" : refusal,
                  status,
                  ours ? "The service made a mistake." : "The request cannot be read.");
      try {
        response.setContentType(MediaType.APPLICATION_PROBLEM_JSON_VALUE);
        response.getReporter().write(problem);
        response.finishResponse();
      } catch (IOException e) {
        container.getLogger().debug("nobody waits for the answer", e);
      }
    }
  }
}

package schedlab.bank;

import java.time.Clock;
import java.time.Duration;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.ConfigurationPropertiesScan;
import org.springframework.context.annotation.Bean;

/** The banking service. */
@SpringBootApplication
@ConfigurationPropertiesScan
public class BankApplication {

  public static void main(String[] arguments) {
    SpringApplication.run(BankApplication.class, arguments);
  }

  /** Whole microseconds, as the database stores them: what is answered is what is read later. */
  @Bean
  Clock clock() {
    return Clock.tick(Clock.systemUTC(), Duration.ofNanos(1_000));
  }
}

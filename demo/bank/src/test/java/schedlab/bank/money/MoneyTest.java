package schedlab.bank.money;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class MoneyTest {

  private final ObjectMapper json = new ObjectMapper();

  @ParameterizedTest
  @CsvSource({
    "0.01, 0.01",
    "12.3, 12.30",
    "-5, -5.00",
    "1e3, 1000.00",
    "7.1000, 7.10",
    "999999999999.99, 999999999999.99"
  })
  void an_amount_is_read_and_written_to_the_cent(String text, String written) throws Exception {
    assertThat(Money.valueOf(text)).hasToString(written);
    assertThat(json.writeValueAsString(json.readValue(text, Money.class))).isEqualTo(written);
  }

  @ParameterizedTest
  @ValueSource(strings = {"0.001", "1.999", "1e-999999999"})
  void parts_of_a_cent_are_refused(String text) {
    assertThatThrownBy(() -> Money.valueOf(text)).hasMessage("an amount has at most two decimals");
  }

  @ParameterizedTest
  @ValueSource(strings = {"1000000000000.01", "-1e13", "1e999999999"})
  void what_is_beyond_a_million_million_is_refused(String text) {
    assertThatThrownBy(() -> Money.valueOf(text))
        .hasMessage("an amount is at most 1000000000000.00");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "ten", "1,5", "0x10", "NaN"})
  void what_is_no_number_is_refused(String text) {
    assertThatThrownBy(() -> Money.valueOf(text)).hasMessage("'%s' is no amount".formatted(text));
  }

  @Test
  void sums_do_not_wrap_around() {
    Money largest = new Money(Long.MAX_VALUE);
    assertThatThrownBy(() -> largest.plus(new Money(1))).isInstanceOf(ArithmeticException.class);
    assertThat(new Money(10).plus(new Money(20)).minus(new Money(1))).isEqualTo(new Money(29));
  }
}

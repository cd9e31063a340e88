package schedlab.bank.web;

import java.beans.PropertyEditorSupport;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.springframework.web.bind.WebDataBinder;
import org.springframework.web.bind.annotation.ControllerAdvice;
import org.springframework.web.bind.annotation.InitBinder;

/**
 * Rule that whole numbers in paths and queries are decimal, each in one spelling. Spring alone also
 * reads {@code 0x10}, {@code #10}, {@code +16} and {@code 016}, and passes over spaces.
 */
@ControllerAdvice
class DecimalNumbers {

  private static final Pattern DECIMAL = Pattern.compile("0|-?[1-9][0-9]*");

  /** Editors, not converters: where a converter refuses, Spring asks its own editors. */
  @InitBinder
  void readDecimals(WebDataBinder binder) {
    // Bodies are Jackson's, which reads nothing but decimal numbers.
    if (binder.getTarget() == null) {
      binder.registerCustomEditor(long.class, new Editor(Long::valueOf));
      binder.registerCustomEditor(int.class, new Editor(Integer::valueOf));
    }
  }

  private static final class Editor extends PropertyEditorSupport {

    private final Function<String, Number> read;

    Editor(Function<String, Number> read) {
      this.read = read;
    }

    @Override
    public void setAsText(String text) {
      if (!DECIMAL.matcher(text).matches()) {
        throw new IllegalArgumentException("'%s' is no decimal whole number".formatted(text));
      }
      setValue(read.apply(text));
    }
  }
}

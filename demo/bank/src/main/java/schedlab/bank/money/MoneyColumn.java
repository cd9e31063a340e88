package schedlab.bank.money;

import jakarta.persistence.AttributeConverter;
import jakarta.persistence.Converter;

/** Money is stored as whole cents. */
@Converter(autoApply = true)
public class MoneyColumn implements AttributeConverter<Money, Long> {

  @Override
  public Long convertToDatabaseColumn(Money money) {
    return money == null ? null : money.cents();
  }

  @Override
  public Money convertToEntityAttribute(Long cents) {
    return cents == null ? null : new Money(cents);
  }
}

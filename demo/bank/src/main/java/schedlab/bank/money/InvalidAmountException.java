package schedlab.bank.money;

/** A text or number that is no amount of money; the message says why. */
public class InvalidAmountException extends IllegalArgumentException {

  public InvalidAmountException(String message) {
    super(message);
  }
}

package schedlab.bank.transactions;

import jakarta.validation.constraints.NotNull;
import schedlab.bank.money.Money;
import schedlab.bank.web.InvalidRequestException;

/** Money that is to go from one account to another one. */
record TransferRequest(
    @NotNull Long fromAccountId, @NotNull Long toAccountId, @NotNull Money amount) {

  /** Checks that need more than one field. */
  void check() {
    if (fromAccountId.equals(toAccountId)) {
      throw new InvalidRequestException("fromAccountId and toAccountId must differ");
    }
    if (!amount.isPositive()) {
      throw new InvalidRequestException("amount must be positive");
    }
  }
}

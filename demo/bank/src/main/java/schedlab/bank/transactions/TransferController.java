package schedlab.bank.transactions;

import jakarta.validation.Valid;
import java.time.Instant;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import schedlab.bank.money.Money;

/** Transfers. */
@RestController
class TransferController {

  private final Transfers transfers;

  TransferController(Transfers transfers) {
    this.transfers = transfers;
  }

  record TransferView(
      long transactionId,
      Transaction.Status status,
      long fromAccountId,
      long toAccountId,
      Money amount,
      int fraudScore,
      Instant createdAt) {
    static TransferView of(Transaction transaction) {
      return new TransferView(
          transaction.id(),
          transaction.status(),
          transaction.senderId(),
          transaction.receiverId(),
          transaction.amount(),
          transaction.fraudScore(),
          transaction.createdAt());
    }
  }

  @PostMapping("/api/transactions/transfer")
  @ResponseStatus(HttpStatus.CREATED)
  TransferView transfer(@Valid @RequestBody TransferRequest request) {
    request.check();
    return TransferView.of(transfers.transfer(request));
  }
}

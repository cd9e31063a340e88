package schedlab.bank.transactions;

import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import java.time.Instant;
import schedlab.bank.money.Money;

/** A transfer that was decided: completed, or refused as suspicious. */
@Entity
@Table(name = "transactions")
class Transaction {

  enum Status {
    COMPLETED,
    REFUSED
  }

  @Id
  @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "transaction_ids")
  @SequenceGenerator(
      name = "transaction_ids",
      sequenceName = "transaction_ids",
      allocationSize = 50)
  private Long id;

  private long senderId;

  private long receiverId;

  @Column(name = "amount_cents")
  private Money amount;

  @Enumerated(EnumType.STRING)
  private Status status;

  private int fraudScore;

  private Instant createdAt;

  protected Transaction() {}

  Transaction(TransferRequest request, Status status, int fraudScore, Instant createdAt) {
    this.senderId = request.fromAccountId();
    this.receiverId = request.toAccountId();
    this.amount = request.amount();
    this.status = status;
    this.fraudScore = fraudScore;
    this.createdAt = createdAt;
  }

  long id() {
    return id;
  }

  long senderId() {
    return senderId;
  }

  long receiverId() {
    return receiverId;
  }

  Money amount() {
    return amount;
  }

  Status status() {
    return status;
  }

  int fraudScore() {
    return fraudScore;
  }

  Instant createdAt() {
    return createdAt;
  }
}

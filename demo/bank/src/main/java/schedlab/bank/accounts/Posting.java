package schedlab.bank.accounts;

import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import java.time.Instant;
import schedlab.bank.money.Money;

/**
 * One change of one account: its opening, or one side of a transfer. Postings are never changed;
 * those of an account add up to its balance, the two of a transfer to zero.
 */
@Entity
@Table(name = "postings")
public class Posting {

  @Id
  @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "posting_ids")
  @SequenceGenerator(name = "posting_ids", sequenceName = "posting_ids", allocationSize = 50)
  private Long id;

  private long accountId;

  /** None for the opening. */
  private Long transactionId;

  private Long counterpartyId;

  @Column(name = "amount_cents")
  private Money amount;

  @Column(name = "balance_cents")
  private Money balance;

  private Instant createdAt;

  protected Posting() {}

  private Posting(
      Account account, Long transactionId, Long counterpartyId, Money amount, Instant createdAt) {
    this.accountId = account.id();
    this.transactionId = transactionId;
    this.counterpartyId = counterpartyId;
    this.amount = amount;
    this.balance = account.balance();
    this.createdAt = createdAt;
  }

  static Posting opening(Account account, Instant at) {
    return new Posting(account, null, null, account.balance(), at);
  }

  /** One side of a transfer, after the account's balance was changed. */
  public static Posting of(
      Account account, Account counterparty, long transactionId, Money amount, Instant at) {
    return new Posting(account, transactionId, counterparty.id(), amount, at);
  }

  public Long transactionId() {
    return transactionId;
  }

  public Long counterpartyId() {
    return counterpartyId;
  }

  public Money amount() {
    return amount;
  }

  public Money balance() {
    return balance;
  }

  public Instant createdAt() {
    return createdAt;
  }
}

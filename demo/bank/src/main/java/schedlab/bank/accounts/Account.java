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

/** An account. Its balance changes only while its row is locked. */
@Entity
@Table(name = "accounts")
public class Account {

  @Id
  @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "account_ids")
  @SequenceGenerator(name = "account_ids", sequenceName = "account_ids", allocationSize = 50)
  private Long id;

  private String owner;

  @Column(name = "balance_cents")
  private Money balance;

  private Instant openedAt;

  protected Account() {}

  Account(String owner, Money balance, Instant openedAt) {
    this.owner = owner;
    this.balance = balance;
    this.openedAt = openedAt;
  }

  public long id() {
    return id;
  }

  public String owner() {
    return owner;
  }

  public Money balance() {
    return balance;
  }

  public Instant openedAt() {
    return openedAt;
  }

  public void withdraw(Money amount) {
    if (balance.compareTo(amount) < 0) {
      throw new InsufficientFundsException(id);
    }
    balance = balance.minus(amount);
  }

  public void deposit(Money amount) {
    balance = balance.plus(amount);
  }
}

package schedlab.bank.accounts;

import jakarta.persistence.LockModeType;
import java.util.Optional;
import org.springframework.data.jpa.repository.Lock;
import org.springframework.data.jpa.repository.Query;
import org.springframework.data.repository.Repository;

/** The accounts as they are stored. */
public interface AccountRepository extends Repository<Account, Long> {

  Account save(Account account);

  Optional<Account> findById(long id);

  /** Reads the account and keeps its row locked until the transaction ends. */
  @Lock(LockModeType.PESSIMISTIC_WRITE)
  @Query("select a from Account a where a.id = :id")
  Optional<Account> lockById(long id);

  /** The sum of all balances in cents; transfers do not change it. */
  @Query(value = "select coalesce(sum(balance_cents), 0) from accounts", nativeQuery = true)
  long totalCents();
}

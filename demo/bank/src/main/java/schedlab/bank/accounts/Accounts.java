package schedlab.bank.accounts;

import java.time.Clock;
import java.time.Instant;
import java.util.List;
import org.springframework.data.domain.Limit;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;
import schedlab.bank.money.Money;

/** Opens and finds accounts. */
@Service
public class Accounts {

  private final AccountRepository accounts;
  private final PostingRepository postings;
  private final Clock clock;

  Accounts(AccountRepository accounts, PostingRepository postings, Clock clock) {
    this.accounts = accounts;
    this.postings = postings;
    this.clock = clock;
  }

  @Transactional
  public Account open(String owner, Money initialBalance) {
    Instant now = clock.instant();
    Account account = accounts.save(new Account(owner, initialBalance, now));
    postings.save(Posting.opening(account, now));
    return account;
  }

  @Transactional(readOnly = true)
  public Account find(long id) {
    return accounts.findById(id).orElseThrow(() -> new UnknownAccountException(id));
  }

  @Transactional(readOnly = true)
  public List<Posting> history(long id, int limit) {
    find(id);
    return postings.findByAccountIdOrderByIdDesc(id, Limit.of(limit));
  }

  /** How many transfers the account has sent since then. */
  @Transactional(readOnly = true)
  public int countSent(long id, Instant since) {
    return postings.countSent(id, since);
  }

  /** Writes down the two sides of a transfer whose amount has been withdrawn and deposited. */
  public void post(long transactionId, Account sender, Account receiver, Money amount, Instant at) {
    postings.save(Posting.of(sender, receiver, transactionId, amount.negated(), at));
    postings.save(Posting.of(receiver, sender, transactionId, amount, at));
  }

  /** Locks the account until the transaction ends; the caller keeps the order of locks. */
  public Account lock(long id) {
    return accounts.lockById(id).orElseThrow(() -> new UnknownAccountException(id));
  }
}

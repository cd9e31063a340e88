package schedlab.bank.accounts;

import java.time.Instant;
import java.util.List;
import org.springframework.data.domain.Limit;
import org.springframework.data.jpa.repository.Query;
import org.springframework.data.repository.Repository;

/** The postings as they are stored. */
public interface PostingRepository extends Repository<Posting, Long> {

  Posting save(Posting posting);

  List<Posting> findByAccountIdOrderByIdDesc(long accountId, Limit limit);

  /** How many transfers the account has sent since then. */
  @Query(
      """
      select count(p) from Posting p
      where p.accountId = :accountId and p.createdAt >= :since
        and p.transactionId is not null and p.amount < 0
      """)
  int countSent(long accountId, Instant since);
}

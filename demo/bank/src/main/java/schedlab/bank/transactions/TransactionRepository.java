package schedlab.bank.transactions;

import org.springframework.data.repository.Repository;

/** The transfers as they are stored. */
interface TransactionRepository extends Repository<Transaction, Long> {

  Transaction save(Transaction transaction);

  long countByStatus(Transaction.Status status);
}

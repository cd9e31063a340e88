package schedlab.bank.accounts;

import jakarta.validation.Valid;
import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;
import jakarta.validation.constraints.NotBlank;
import jakarta.validation.constraints.NotNull;
import jakarta.validation.constraints.Size;
import java.net.URI;
import java.time.Instant;
import java.util.List;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import schedlab.bank.money.Money;
import schedlab.bank.web.InvalidRequestException;

/** Opening of accounts, and what is in them. */
@RestController
@RequestMapping("/api/accounts")
class AccountController {

  private final Accounts accounts;

  AccountController(Accounts accounts) {
    this.accounts = accounts;
  }

  record NewAccount(@NotBlank @Size(max = 100) String owner, @NotNull Money initialBalance) {}

  record AccountView(long id, String owner, Money balance, Instant openedAt) {
    static AccountView of(Account account) {
      return new AccountView(account.id(), account.owner(), account.balance(), account.openedAt());
    }
  }

  /** A line of an account's history; the amount is negative where money left it. */
  record PostingView(
      Long transactionId, Long counterpartyId, Money amount, Money balance, Instant createdAt) {
    static PostingView of(Posting posting) {
      return new PostingView(
          posting.transactionId(),
          posting.counterpartyId(),
          posting.amount(),
          posting.balance(),
          posting.createdAt());
    }
  }

  record HistoryView(long accountId, List<PostingView> transactions) {}

  record BalanceView(long accountId, Money balance) {}

  @PostMapping
  ResponseEntity<AccountView> open(@Valid @RequestBody NewAccount request) {
    if (request.initialBalance().compareTo(Money.ZERO) < 0) {
      throw new InvalidRequestException("initialBalance must not be negative");
    }
    Account account = accounts.open(request.owner(), request.initialBalance());
    return ResponseEntity.created(URI.create("/api/accounts/" + account.id()))
        .body(AccountView.of(account));
  }

  @GetMapping("/{id}")
  AccountView show(@PathVariable long id) {
    return AccountView.of(accounts.find(id));
  }

  @GetMapping("/{id}/balance")
  BalanceView balance(@PathVariable long id) {
    return new BalanceView(id, accounts.find(id).balance());
  }

  /** The newest lines first. */
  @GetMapping("/{id}/transactions")
  HistoryView transactions(
      @PathVariable long id, @RequestParam(defaultValue = "20") @Min(1) @Max(100) int limit) {
    List<PostingView> newest = accounts.history(id, limit).stream().map(PostingView::of).toList();
    return new HistoryView(id, newest);
  }
}

-- Numbers are taken in lots of fifty, so that most inserts ask no sequence.
create sequence account_ids increment by 50;
create sequence transaction_ids increment by 50;
create sequence posting_ids increment by 50;

create table accounts (
  id bigint primary key,
  owner varchar(100) not null,
  balance_cents bigint not null check (balance_cents >= 0),
  opened_at timestamp(6) with time zone not null
);

-- Every transfer that was decided, the refused ones too.
create table transactions (
  id bigint primary key,
  sender_id bigint not null references accounts,
  receiver_id bigint not null references accounts,
  amount_cents bigint not null check (amount_cents > 0),
  status varchar(16) not null,
  fraud_score int not null,
  created_at timestamp(6) with time zone not null
);

-- The two sides of a completed transfer, and the opening of an account: the sum of an
-- account's postings is its balance.
create table postings (
  id bigint primary key,
  account_id bigint not null references accounts,
  transaction_id bigint references transactions,
  counterparty_id bigint references accounts,
  amount_cents bigint not null,
  balance_cents bigint not null,
  created_at timestamp(6) with time zone not null
);
create index postings_by_account on postings (account_id, id desc);
create index postings_by_time on postings (account_id, created_at);

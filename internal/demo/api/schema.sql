-- The tables of the demo, in a schema of their own. Running this again changes nothing; the lock orders servers that
-- start at the same time.
select pg_advisory_xact_lock(hashtextextended('pgidem_demo', 0));

create schema if not exists pgidem_demo;

create table if not exists pgidem_demo.payments (
  id uuid not null default gen_random_uuid(),
  number bigint not null generated always as identity,
  principal_id uuid not null,
  version integer not null default 1,
  amount bigint not null,
  currency text not null,
  recipient text not null,
  created_at timestamptz not null default now(),
  constraint payments_pkey primary key (id),
  constraint payments_amount_is_positive_check check (amount > 0)
);

create index if not exists payments_principal_id_number_idx on pgidem_demo.payments (principal_id, number);

create table if not exists pgidem_demo.tokens (
  id uuid not null default gen_random_uuid(),
  principal_id uuid not null,
  version integer not null default 1,
  token_sha256 bytea not null,
  created_at timestamptz not null default now(),
  constraint tokens_pkey primary key (id)
);

create table if not exists pgidem_demo.notes (
  number bigint not null generated always as identity,
  principal_id uuid not null,
  note text not null,
  created_at timestamptz not null default now(),
  constraint notes_pkey primary key (number)
);

create table if not exists pgidem_demo.charges (
  number bigint not null generated always as identity,
  downstream_key uuid,
  account uuid not null,
  amount bigint not null,
  recipient text not null,
  created_at timestamptz not null default now(),
  constraint charges_pkey primary key (number),
  constraint charges_downstream_key_key unique (downstream_key)
);

create table if not exists pgidem_demo.crashes (
  downstream_key text not null,
  constraint crashes_pkey primary key (downstream_key)
);

comment on schema pgidem_demo is 'Tables of the payments API that "pgidem demo" serves. Drop it when you are done.';
comment on table pgidem_demo.payments is 'The effects: one row for each payment.';
comment on column pgidem_demo.payments.number is 'The order in which payments were made.';
comment on column pgidem_demo.payments.version is 'Counts changes; the ETag of a payment.';
comment on table pgidem_demo.tokens is 'Tokens, of which only a hash is kept: the token itself is shown once.';
comment on table pgidem_demo.notes is 'Notes, which are plain text.';
comment on table pgidem_demo.charges is
  'The books of the payment provider, which stands for somebody else: written by it alone, outside any transaction of the API.';
comment on column pgidem_demo.charges.downstream_key is 'The idempotency key of the provider, null where it was given none or does not look at it.';
comment on table pgidem_demo.crashes is 'Downstream keys for which the API has crashed as asked; it does so once for each.';

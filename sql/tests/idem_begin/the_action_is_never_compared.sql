begin;
-- L3.
\ir ../_setup.psql
select plan(1);

select :begin_key \gset
select :complete_key \gset
select is((pgidem.idem_begin(:'principal', :'key', 'refund', :'fingerprint')).outcome, 'replay',
  'another action and the same fingerprint');

select * from finish();
rollback;

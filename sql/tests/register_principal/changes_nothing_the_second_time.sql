begin;
\ir ../_setup.psql
select plan(2);

insert into pgidem.principals values (:'principal', '2026-01-01 00:00+00');
select ctid as before from pgidem.principals where id = :'principal' \gset
select lives_ok(format('select pgidem.register_principal(%L)', :'principal'), 'no error');
select results_eq(
  format('select ctid::text, created_at from pgidem.principals where id = %L', :'principal'),
  format($$values (%L, '2026-01-01 00:00+00'::timestamptz)$$, :'before'),
  'the row is the same'
);

select * from finish();
rollback;

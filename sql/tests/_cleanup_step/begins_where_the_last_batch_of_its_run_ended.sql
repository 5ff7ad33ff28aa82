begin;
\ir ../_expired_keys.psql
select plan(3);

select p_run as run from pgidem._cleanup_step(2, null) \gset
insert into pgidem.idempotency_keys
values (:'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, '{}', null, '2000-03-01 12:00+00', '2000-03-02 12:00+00');
select is(p_deleted, 1, 'the one behind the mark') from pgidem._cleanup_step(2, :run);
select is(pg_temp.left_over(:'principal'), '00 04 05', 'not one that came into being before it');
select is(p_deleted, 1, 'which is for the next run') from pgidem._cleanup_step(2, null);

select * from finish();
rollback;

begin;
\ir ../_expired_keys.psql
select plan(6);

prepare run as select batches, deleted, to_char(mark at time zone 'UTC', 'MI'), started_at, ended_at from pgidem.cleanup_run order by id desc limit 1;
select p_run as run, p_deleted as deleted, p_more as more from pgidem._cleanup_step(2, null) \gset
select is(format('%s %s', :'deleted', :'more'), '2 t', 'the first batch');
select results_eq('execute run', $$values (1, 2::bigint, '02', '2000-03-02 12:03+00'::timestamptz, null::timestamptz)$$, 'while it runs');
set local test.now = '2000-03-02 12:03:01+00';
select results_eq(format('select * from pgidem._cleanup_step(2, %s)', :'run'), format('values (%s::bigint, 1, false)', :'run'), 'the second one, of the same run');
select results_eq(
  'execute run',
  $$values (2, 3::bigint, '03', '2000-03-02 12:03+00'::timestamptz, '2000-03-02 12:03:01+00'::timestamptz)$$,
  'when it has ended'
);
select isnt(p_run, :'run'::bigint, 'another run') from pgidem._cleanup_step(2, null);
select results_eq(
  $$select batches, deleted, mark, ended_at from pgidem.cleanup_run order by id desc limit 1$$,
  $$values (1, 0::bigint, '-infinity'::timestamptz, '2000-03-02 12:03:01+00'::timestamptz)$$,
  'one that finds nothing is written down too'
);

select * from finish();
rollback;

begin;
\ir ../_expired_keys.psql
\ir ../_diagnose.psql
select plan(13);

select is(pg_temp.diagnose(format('call pgidem.cleanup(%s)', arguments)) ->> 'code', '22023', arguments)
from unnest(array[
  'p_batch_size => 0',
  'p_batch_size => -1',
  'p_max_batches => 0',
  'p_max_batches => -1',
  'p_pause => ''0''',
  'p_pause => ''-1 second''',
  'p_pause => ''1 hour 1 microsecond''',
  'p_pause => ''1 month''',
  'p_pause => ''1 year -360 days'''
]) arguments;

select pg_temp.diagnose('call pgidem.cleanup(10, -1, ''2 hours'')') as e \gset
select is(:'e'::jsonb ->> 'message', 'invalid argument', 'the message');
select is(:'e'::jsonb ->> 'detail', 'p_batch_size is 10, p_max_batches is -1, p_pause is 02:00:00.', 'the detail names the values');
select alike(:'e'::jsonb ->> 'hint', '%at least 1 row, at least 1 batch%at most 1 hour%', 'the hint says what is valid');
select is(pg_temp.left_over(:'principal'), '01 02 03 04 05', 'nothing was deleted');

select * from finish();
rollback;

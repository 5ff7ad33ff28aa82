begin;
\ir ../_alone.psql
select plan(3);

select throws_ok('insert into pgidem.settings default values', '23505', null, 'the same row again');
select throws_ok('insert into pgidem.settings (singleton) values (false)', '23514', null, 'another one');
select throws_ok('insert into pgidem.settings (singleton) values (null)', '23502', null, 'one without a key');

select * from finish();
rollback;

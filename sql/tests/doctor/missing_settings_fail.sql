begin;
\ir ../_doctor.psql
select plan(4);

select is(pg_temp.detail('settings'), 'key_ttl 24:00:00, lock_timeout 00:00:02, lease 00:10:00, retention 24:00:00', 'the defaults in force');
delete from pgidem.settings;
select is(pg_temp.status('settings'), 'fail', 'none');
select is(pg_temp.status('lock_timeout'), 'ok', 'and the other checks go on');
select is(pg_temp.follow('settings'), 'ok', 'the mend helps');

select * from finish();
rollback;

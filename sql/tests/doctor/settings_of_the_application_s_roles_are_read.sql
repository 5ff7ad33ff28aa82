begin;
\ir ../_doctor.psql
select plan(21);

-- Without a role that was granted it, the session of the test counts.
create role "pgidem test app" login;
select pgidem.grant_app('pgidem test app') \gset
select current_database() as database \gset
prepare findings as
select check_name, status from pgidem.doctor()
where check_name in ('read_only', 'lock_timeout', 'idle_timeout', 'tcp_timeouts', 'synchronous_commit') and status <> 'ok';

alter role "pgidem test app" set synchronous_commit = on;
select results_eq('findings', $$values ('idle_timeout', 'warn'), ('tcp_timeouts', 'warn')$$, 'what a server has by itself');
select alike(pg_temp.detail('idle_timeout'), '% is off for "pgidem test app": %', 'it says for whom');
select is(pg_temp.follow('idle_timeout'), 'ok', 'the mend helps: idle_timeout');
select is(pg_temp.follow('tcp_timeouts'), 'ok', 'the mend helps: tcp_timeouts');
select is_empty('findings', 'all is well');

alter role "pgidem test app" reset tcp_user_timeout;
alter role "pgidem test app" set tcp_keepalives_idle = 60;
select is_empty('findings', 'keepalives do');

alter role "pgidem test app" set statement_timeout = '2s';
select results_eq('findings', $$values ('lock_timeout', 'warn')$$, 'a statement_timeout that is not longer');
select alike(pg_temp.detail('lock_timeout'), 'statement_timeout of "pgidem test app" is not longer than the 00:00:02 %', 'it says of whom');
select is(pg_temp.follow('lock_timeout'), 'ok', 'the mend helps: lock_timeout');
alter role "pgidem test app" set statement_timeout = 1999;
select is(pg_temp.status('lock_timeout'), 'warn', 'a number alone is milliseconds');
alter role "pgidem test app" set statement_timeout = 2001;
select is(pg_temp.status('lock_timeout'), 'ok', 'longer by one');
alter role "pgidem test app" set statement_timeout = 0;
select is(pg_temp.status('lock_timeout'), 'ok', 'zero is none');

-- What is more special wins.
alter database :"database" set statement_timeout = '1s';
select is(pg_temp.status('lock_timeout'), 'ok', 'the role before the database');
alter role "pgidem test app" reset statement_timeout;
select is(pg_temp.status('lock_timeout'), 'warn', 'the database before the server');
alter role "pgidem test app" in database :"database" set statement_timeout = '1min';
select is(pg_temp.status('lock_timeout'), 'ok', 'the role in this database before all');

alter role "pgidem test app" set synchronous_commit = off;
select is(pg_temp.status('synchronous_commit'), 'warn', 'off');
select is(pg_temp.follow('synchronous_commit'), 'ok', 'the mend helps: synchronous_commit');
alter role "pgidem test app" set synchronous_commit = local;
select is(pg_temp.status('synchronous_commit'), 'ok', 'local, without a standby to wait for');

alter role "pgidem test app" set default_transaction_read_only = on;
select is(pg_temp.status('read_only'), 'fail', 'a role that cannot write');
alter role "pgidem test app" reset default_transaction_read_only;
select is(pg_temp.status('read_only'), 'ok', 'it can');

-- A role that cannot log in is a group, and a superuser no application.
alter role "pgidem test app" set statement_timeout = '1s';
alter role "pgidem test app" nologin;
alter role "pgidem test app" in database :"database" reset statement_timeout;
alter database :"database" reset statement_timeout;
select is(pg_temp.status('lock_timeout'), 'ok', 'a group is not asked');

select * from finish();
rollback;

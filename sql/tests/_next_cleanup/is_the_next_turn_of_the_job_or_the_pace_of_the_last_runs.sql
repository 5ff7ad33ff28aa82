begin;
\ir ../_alone.psql
select plan(10);

-- What pg_cron would say of its job.
create or replace function pgidem._cleanup_jobs(
  out p_id bigint, out p_schedule text, out p_command text, out p_username text, out p_active boolean
)
returns setof record language sql volatile parallel unsafe as $$
  select 1, current_setting('test.schedule'), '', '', current_setting('test.active')::boolean
  where current_setting('test.schedule') <> ''
$$;
create function pg_temp.next(text, text default null) returns text language sql as $$
  select concat_ws(' ', to_char(n.p_at at time zone 'UTC', 'DD HH24:MI:SS'), n.p_is_estimate) from pgidem._next_cleanup($1::timestamptz, $2) n
$$;
delete from pgidem.cleanup_run;
set local test.active = 'true';

set local test.schedule = '';
select is(pg_temp.next('2000-03-02 12:03:10+00'), 't', 'nothing tells');
insert into pgidem.cleanup_run (started_at) values ('2000-03-02 11:00+00');
select is(pg_temp.next('2000-03-02 12:03:10+00'), 't', 'one run has no pace');
insert into pgidem.cleanup_run (started_at) values ('2000-03-02 11:10+00'), ('2000-03-02 11:25+00');
select is(pg_temp.next('2000-03-02 11:30+00'), '02 11:40:00 t', 'the pace of the last two');
select is(pg_temp.next('2000-03-02 12:03:10+00'), '02 11:40:00 t', 'also when it is late');

set local test.schedule = '* * * * *';
select is(pg_temp.next('2000-03-02 12:03:10+00'), '02 12:04:00 f', 'the next minute');
select is(pg_temp.next('2000-03-02 12:03:00+00'), '02 12:04:00 f', 'at a turn the one behind it');
set local test.schedule = '0 0 * * *';
select is(pg_temp.next('2000-03-02 12:03:10+00'), '02 11:40:00 t', 'a schedule that is not of the settings');
update pgidem.settings set cleanup_interval = interval '1 day';
select is(pg_temp.next('2000-03-02 12:03:10+00'), '03 00:00:00 f', 'the next day');
select is(pg_temp.next('2000-03-02 12:03:10+00', 'Europe/Berlin'), '02 23:00:00 f', 'where pg_cron keeps to another zone');
set local test.active = 'false';
select is(pg_temp.next('2000-03-02 12:03:10+00'), '02 11:40:00 t', 'a job that is switched off');

select * from finish();
rollback;

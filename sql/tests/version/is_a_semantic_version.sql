begin;
select plan(1);

select matches(pgidem.version(), '^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$', 'such as 0.1.0');

select * from finish();
rollback;

begin;
-- C2.
\ir ../_setup.psql
select plan(5);

select ok(not pgidem._mine(xmin), 'a row that was committed before') from pgidem.settings;

insert into pgidem.principals (id, created_at) values (:'principal', 'infinity');
select ok(pgidem._mine(xmin), 'a row of the transaction') from pgidem.principals where id = :'principal';

savepoint a;
savepoint b;
update pgidem.principals set created_at = now() where id = :'principal';
select ok(pgidem._mine(xmin), 'of an open subtransaction') from pgidem.principals where id = :'principal';
release savepoint b;
select ok(pgidem._mine(xmin), 'of one that was released into another') from pgidem.principals where id = :'principal';
release savepoint a;
select ok(pgidem._mine(xmin), 'of one that was released') from pgidem.principals where id = :'principal';

select * from finish();
rollback;

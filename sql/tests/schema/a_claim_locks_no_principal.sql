begin;
\ir ../_setup.psql
select plan(2);

-- H1: a key share lock at begin would deadlock two requests of one user whose handlers lock that user for update.
select pgidem.register_principal(:'principal') \gset
select :begin_key \gset
select :complete_key \gset
select is(xmax, '0'::xid, 'no row lock before COMMIT') from pgidem.principals where id = :'principal';

set constraints all immediate;
select isnt(xmax, '0'::xid, 'the check at COMMIT takes it') from pgidem.principals where id = :'principal';

select * from finish();
rollback;

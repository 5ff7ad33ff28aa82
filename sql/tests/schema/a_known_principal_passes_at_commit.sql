begin;
\ir ../_setup.psql
select plan(1);

select pgidem.register_principal(:'principal') \gset
select :begin_key \gset
select :complete_key \gset
select lives_ok('set constraints all immediate', 'what COMMIT does first');

select * from finish();
rollback;

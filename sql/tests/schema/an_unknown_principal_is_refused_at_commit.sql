begin;
-- H1.
\ir ../_setup.psql
select plan(3);

select is((:begin_key).outcome, 'claimed', 'the claim itself asks nobody');
select throws_ok('set constraints all immediate', '23503', null, 'what COMMIT does first raises 23503');
select throws_like('set constraints all immediate', '%idempotency_keys_principal_id_fkey%', 'and names the constraint');

select * from finish();
rollback;

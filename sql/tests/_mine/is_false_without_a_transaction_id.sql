begin;
-- Before plan, whose temporary tables take an id.
select pg_current_xact_id_if_assigned() is null as free, pgidem._mine(xmin) as mine, pg_current_xact_id_if_assigned() is null as still_free
from pgidem.settings \gset
select plan(3);

select ok(:'free', 'no id yet');
select ok(not :'mine', 'so nothing can be of this transaction');
select ok(:'still_free', 'and asking takes none');

select * from finish();
rollback;

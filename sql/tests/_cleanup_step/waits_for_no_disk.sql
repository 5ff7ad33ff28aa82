begin;
-- Its COMMIT, that is: most of the time of a run would go there. What a crash undoes has expired all the same.
select plan(2);

set local synchronous_commit = on;
select is(p_deleted, 0, 'a step') from pgidem._cleanup_step(1000, null);
select is(current_setting('synchronous_commit'), 'off', 'its transaction does not wait for the disk');

select * from finish();
rollback;

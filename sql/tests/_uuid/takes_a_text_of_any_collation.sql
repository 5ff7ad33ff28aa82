begin;
-- A column of names that are equal in any case, say: regular expressions refuse its collation.
select plan(2);

create collation pg_temp.any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
select is(pgidem._uuid('0192F0C1-2345-7abc-8def-0123456789ab' collate pg_temp.any_case), '0192f0c1-2345-7abc-8def-0123456789ab', 'a UUID');
select is(pgidem._uuid('payment' collate pg_temp.any_case), null, 'another text');

select * from finish();
rollback;

begin;
select plan(4);

select is(pgidem._uuid('0192f0c1-2345-7abc-8def-0123456789ab'), '0192f0c1-2345-7abc-8def-0123456789ab', 'lower case');
select is(pgidem._uuid('0192F0C1-2345-7ABC-8DEF-0123456789AB'), '0192f0c1-2345-7abc-8def-0123456789ab', 'upper case');
select is(pgidem._uuid('00000000-0000-0000-0000-000000000000'), '00000000-0000-0000-0000-000000000000', 'of any version: all zeros');
select is(pgidem._uuid('FFffFFff-ffff-ffff-ffff-ffffffffffff'), 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'all ones');

select * from finish();
rollback;

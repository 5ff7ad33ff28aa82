begin;
-- A cast would raise for some of these and accept others.
create temporary table texts (what text, value text);
insert into texts values
  ('null', null),
  ('empty', ''),
  ('a word', 'payment'),
  ('without hyphens', '0192f0c123457abc8def0123456789ab'),
  ('in braces', '{0192f0c1-2345-7abc-8def-0123456789ab}'),
  ('as a URN', 'urn:uuid:0192f0c1-2345-7abc-8def-0123456789ab'),
  ('quoted', '"0192f0c1-2345-7abc-8def-0123456789ab"'),
  ('a blank in front', ' 0192f0c1-2345-7abc-8def-0123456789ab'),
  ('a blank behind', '0192f0c1-2345-7abc-8def-0123456789ab '),
  ('a line feed behind', E'0192f0c1-2345-7abc-8def-0123456789ab\n'),
  ('a line feed at the end', E'0192f0c1-2345-7abc-8def-0123456789a\n'),
  ('on a line of its own', E'x\n0192f0c1-2345-7abc-8def-0123456789ab'),
  ('hyphens elsewhere', '0192-f0c1-2345-7abc-8def0123456789ab'),
  ('a hyphen elsewhere', '0192f0c12-345-7abc-8def-0123456789ab'),
  ('a hyphen more', '0192f0c1-2345-7abc-8def-0123456789-b'),
  ('only hyphens', repeat('-', 36)),
  ('no hexadecimal digit', '0192f0c1-2345-7abc-8def-0123456789ag'),
  ('digits of another alphabet', '0192f0c1-2345-7abc-8def-01234567８９ab'),
  ('too short', '0192f0c1-2345-7abc-8def-0123456789a'),
  ('too long', '0192f0c1-2345-7abc-8def-0123456789abc'),
  ('a megabyte', repeat('0', 1000000));
select plan(count(*)::integer) from texts;

select is(pgidem._uuid(value), null, what) from texts;

select * from finish();
rollback;

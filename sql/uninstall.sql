begin;
commit;

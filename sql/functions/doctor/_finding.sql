create or replace function pgidem._finding(
  p_check_name text,
  p_status text,
  p_detail text,
  p_mend text
)
returns pgidem.diagnosis
language sql
immutable
parallel safe
security invoker
return (p_check_name, p_status, p_detail, case when p_status <> 'ok' then p_mend end)::pgidem.diagnosis;

comment on function pgidem._finding(text, text, text, text) is 'The result of one check; what is ok needs no mending.';

revoke all on function pgidem._finding(text, text, text, text) from public;

/*
The one list of who may call what. The first function of a group is its anchor: a role that may execute it was granted
the group, so the anchor belongs to no other group.
*/
create or replace function pgidem._group_functions(
  p_group text
)
returns text[]
language sql
immutable
parallel safe
security invoker
return case p_group
  when 'app' then array[
    'idem_begin',
    'idem_complete',
    'idem_save_final',
    'idem_claim',
    'idem_claim_committed',
    'idem_finish',
    'idem_release',
    'idem_renew',
    'idem_assert_lease',
    'register_principal',
    'show_settings',
    'version'
  ]
  when 'operator' then array[
    'cleanup_batch',
    'cleanup',
    '_cleanup_step',
    'schedule_cleanup',
    'unschedule_cleanup',
    'stats',
    'cleanup_runs',
    'doctor',
    'lookup_key',
    'forget_key',
    'forget_principal',
    'show_settings',
    'version'
  ]
end;

comment on function pgidem._group_functions(text) is
  'Names of the functions of a group, app or operator; the first one tells whether a role has the group.';

revoke all on function pgidem._group_functions(text) from public;

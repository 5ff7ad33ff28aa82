/*
The stored text is what the caller sends as the first answer too: jsonb rewrites JSON, and first answer and replay must
be the same bytes.
*/
create or replace function pgidem.idem_complete(
  p_principal_id uuid,
  p_key uuid,
  p_status integer,
  p_body jsonb,
  p_one_time_secret boolean default false
)
returns text
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
set enable_seqscan = off
as $$
declare
  r pgidem.begin_result;
begin
  if p_status is null or p_status not between 200 and 299 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid status',
      detail = format('p_status is %s; idem_complete stores 200 to 299.', coalesce(p_status::text, 'null')),
      hint = 'Roll back any other response. A final 4xx is stored after the rollback, by idem_save_final.';
  end if;
  if p_body = '{"one_time_secret": true}' and not coalesce(p_one_time_secret, false) then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid body',
      detail = 'The body is the mark of a one-time secret, so every replay would be refused.',
      hint = 'Pass p_one_time_secret => true if the response held such a secret, else another body.';
  end if;
  r := pgidem._complete(p_principal_id, p_key, p_status, p_body, coalesce(p_one_time_secret, false));
  return r.response_body;
end
$$;

comment on function pgidem.idem_complete(uuid, uuid, integer, jsonb, boolean) is
$$Stores the response of the operation that idem_begin claimed in this transaction.

It is the last statement before COMMIT; never catch its error. A claim whose TTL ran out meanwhile
gets it counted again from now, so that the response answers the repeats.

Parameters:
p_principal_id: as given to idem_begin.
p_key: as given to idem_begin.
p_status: HTTP status, 200 to 299 (RFC 9110, section 15.3).
p_body: the JSON body (RFC 8259), null for none. Its top-level member id becomes resource_id when it
  is a UUID in its form of 36 characters (RFC 9562).
p_one_time_secret: true when the body holds a secret that is shown once. Then the mark
  {"one_time_secret": true} is stored instead of the body; pass at most {"id": ...}, so that the
  secret never reaches the server.

Returns:
The stored body as text, null when there is none. Send it as the first answer, so that first answer
and every replay are byte-identical. With p_one_time_secret the client gets the operation's own
bytes once.

Errors:
22023: another status, or a body that is {"one_time_secret": true} without p_one_time_secret.
55P03: a wait, such as for a table lock, lasted 2 seconds.
ID001: the key is not in progress in this transaction: idem_begin was undone by a savepoint or an
  exception block, or not called here, or the claim was completed before.

Example:
-- as the application
select pgidem.register_principal('0192f0c1-2345-7abc-8def-0123456789ab');

begin;
select outcome
from pgidem.idem_begin(
  p_principal_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000002',
  p_action => 'create_payment',
  p_request_sha256 => sha256('POST /payments {"amount":2}')
);
--> claimed
-- the operation runs here, in this transaction
select pgidem.idem_complete(
  p_principal_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000002',
  p_status => 201,
  p_body => '{"amount": 2, "id": "0192f0c1-abcd-7abc-8def-000000000002"}'
);
--> {"id": "0192f0c1-abcd-7abc-8def-000000000002", "amount": 2}
commit;$$;

revoke all on function pgidem.idem_complete(uuid, uuid, integer, jsonb, boolean) from public;

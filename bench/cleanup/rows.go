package main

import (
	"fmt"

	"github.com/pgidem/pgidem/bench/internal/trial"
)

// fillKeys returns the statements that store expired and live responses, in the order in which they came.
func fillKeys(expired, live int) []string {
	return []string{
		"set session_replication_role = replica", // without the foreign key
		fmt.Sprintf(`
			insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, state, response_status, response_body, created_at, expires_at)
			select '%s', gen_random_uuid(), 'create_payment', sha256(int4send(i)), 'completed', 201, jsonb_build_object('id', gen_random_uuid(), 'note', repeat('x', 150)),
			  at - interval '24 hours', at
			from (select i, clock_timestamp() + (i - %d) * interval '100 milliseconds' - interval '1 second' as at from generate_series(1, %d) i) s`,
			trial.Principal, expired, expired),
		fmt.Sprintf(`
			insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, state, response_status, response_body, created_at, expires_at)
			select '%s', gen_random_uuid(), 'create_payment', sha256(int4send(i)), 'completed', 201, jsonb_build_object('id', gen_random_uuid(), 'note', repeat('x', 150)),
			  at - interval '24 hours', at
			from (select i, clock_timestamp() + interval '1 hour' + i * interval '100 milliseconds' as at from generate_series(1, %d) i) s`,
			trial.Principal, live),
		"vacuum (freeze, analyze)",
	}
}

func fillRecords(expired, live int) []string {
	fill := func(n int, at string) string {
		return fmt.Sprintf(`
			insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, live_until, retention, response_status, response_content_type, response_body, created_at, finished_at, expires_at)
			select 'alice', gen_random_uuid()::text, sha256(int4send(i)), i, i, 'completed', at, interval '24 hours', 201, 'application/json', convert_to(repeat('x', 200), 'UTF8'), at - interval '24 hours', at - interval '24 hours', at
			from (select i, %s as at from generate_series(1, %d) i) s`, at, n)
	}
	return []string{
		fill(expired, fmt.Sprintf("clock_timestamp() + (i - %d) * interval '100 milliseconds' - interval '1 second'", expired)),
		fill(live, "clock_timestamp() + interval '1 hour' + i * interval '100 milliseconds'"),
		"vacuum (freeze, analyze)",
	}
}

"""A payout by a provider elsewhere: the claim is committed before the provider is asked, and holds for a lease.

DATABASE_URL, or libpq's variables, name a database with pgidem. One request with KEY, or a tour: python3 lease.py [KEY]
"""
import hashlib, json, os, sys, uuid

import psycopg
from psycopg.rows import namedtuple_row


class NothingHappened(Exception): pass  # the operation failed, and surely before its effect


def answer(found):
    """What to send for an outcome: status, body, headers."""
    if found.outcome == "replay" and found.one_time_secret:
        return 409, b'{"code": "conflict", "reason": "one_time_secret"}', {"Idempotent-Replayed": "true"}
    if found.outcome in ("stored", "replay"):
        headers = {"Content-Type": found.content_type, "Location": found.location, "ETag": found.etag}
        headers["Idempotent-Replayed"] = "true" if found.outcome == "replay" else None
        return found.response_status, found.response_body or b"", {name: text for name, text in headers.items() if text}
    if found.outcome == "reused":
        return 422, b'{"code": "idempotency-key-reused"}', {}
    return 409, b'{"code": "idempotency-in-progress"}', {"Retry-After": str(found.retry_after)}


def downstream_key(user, key, sha256):
    """The key for the provider: the same in each run, and the same as in the Go shell (docs/fingerprints.md)."""
    raw = bytearray(hashlib.sha256(f"{user}\n{key}\n{sha256.hex()}".encode()).digest()[:16])
    raw[6], raw[8] = raw[6] & 0x0F | 0x80, raw[8] & 0x3F | 0x80  # UUID version 8
    return str(uuid.UUID(bytes=bytes(raw)))


def keyed(conn, user, key, sha256, operation):
    """Runs operation(downstream_key) under a lease. conn is in autocommit mode: inside a transaction the claim fails."""
    claim = conn.execute("call pgidem.idem_claim_committed(%s, %s, %s)", (user, key, sha256)).fetchone()
    if claim.outcome != "claimed":
        return answer(claim)
    try:
        status, location, body = operation(downstream_key(user, key, sha256))
    except NothingHappened:
        conn.execute("select pgidem.idem_release(%s, %s, %s)", (user, key, claim.token))
        return 503, b'{"code": "service_unavailable"}', {"Retry-After": "1"}
    # Any other error goes up and leaves the claim, since nobody knows what the provider did. Repeats get 409 until the lease
    # ends; then one of them asks the provider again, which is why the downstream key is the same each time.
    done = (user, key, claim.token, status, "application/json", location, body)
    found = conn.execute("select * from pgidem.idem_finish(%s, %s, %s, %s, %s, %s, null, %s)", done).fetchone()
    return answer(found)  # without the outcome stored the lease was lost: what is recorded now counts, not our response


def payout(conn, charge, key, raw_body):
    amount = json.loads(raw_body)["amount"]  # what is malformed is refused before a claim
    def operation(downstream):
        if amount > 1000:
            return 422, None, b'{"code": "over_the_limit"}'
        number = charge(downstream, amount)
        return 201, f"/payouts/{number}", json.dumps({"payout": number}).encode()

    # docs/fingerprints.md, public API contract: the bytes as they came, and the third line is the query, here none.
    return keyed(conn, "alice", key, hashlib.sha256(b"POST\n/payouts\n\n" + raw_body).digest(), operation)


if __name__ == "__main__":
    connect = lambda: psycopg.connect(os.environ.get("DATABASE_URL", ""), autocommit=True, row_factory=namedtuple_row)
    db, books = connect(), connect()  # books: the provider's, which no rollback of ours touches
    books.execute("create table if not exists provider_charge (downstream_key text primary key, amount integer)")

    def provider(key, amount):  # one that takes idempotency keys: the second line, for a worker that dies now
        books.execute("insert into provider_charge values (%s, %s) on conflict do nothing", (key, amount))
        return key[:8]

    def outage(key, amount):
        raise NothingHappened

    one, two = str(uuid.uuid4()), str(uuid.uuid4())
    tour = [("outage", outage, one, 5), ("first", provider, one, 5), ("repeat", provider, one, 5), ("reuse", provider, one, 6),
            ("refused", provider, two, 5000), ("repeat", provider, two, 5000)]
    for name, charge, key, amount in [("given", provider, sys.argv[1], 5)] if sys.argv[1:] else tour:
        status, body, headers = payout(db, charge, key, b'{"amount": %d}' % amount)
        print(f"{name}:", status, body.decode(), json.dumps(headers))

"""A payment that is made once, however often its request comes: claim, effect and answer are one transaction.

DATABASE_URL, or libpq's variables, name a database with pgidem. One request with KEY, or a tour: python3 unit_of_work.py [KEY]
"""
import hashlib, json, os, sys, uuid

import psycopg
from psycopg.rows import namedtuple_row

ALICE = "0192f0c1-2345-7abc-8def-0123456789ab"  # who is logged in; every key is somebody's


class Refused(Exception):
    """A final no of the operation, Refused(status, problem): what it wrote is rolled back, the answer is kept."""


def fingerprint(method, path, body):
    # docs/fingerprints.md, Sync contract. Sorted members, no spaces, whole numbers, ASCII: of such a body this is the
    # canonical form. Bodies that clients write need RFC 8785 (package rfc8785) and the rules of that page.
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{method}\n{path}\n{canonical}".encode()).digest()


def answer(found):
    """What to send when the operation did not run here: status, body, headers."""
    if found.outcome == "replay" and found.one_time_secret:
        return 409, '{"code": "conflict", "reason": "one_time_secret"}', {"Idempotent-Replay": "true"}
    if found.outcome in ("stored", "replay"):
        return found.response_status, found.response_body, {"Idempotent-Replay": "true"} if found.outcome == "replay" else {}
    if found.outcome == "reused":
        return 422, '{"code": "idempotency_key_reuse"}', {}
    return 409, '{"code": "request_in_progress"}', {"Retry-After": str(found.retry_after)}


def keyed(conn, claim, operation):
    """Runs operation(conn) once per key; claim is principal, key, action, fingerprint. conn is in autocommit mode.

    Errors go up. Those of SQLSTATE 40001, 40P01, 55P03, 25006 and a lost connection are a 503, others a 500: repeats are safe.
    """
    conn.execute("begin")
    try:
        found = conn.execute("select * from pgidem.idem_begin(%s, %s, %s, %s)", claim).fetchone()
        if found.outcome != "claimed":
            return answer(found)
        status, body = operation(conn)
        done = (*claim[:2], status, json.dumps(body))
        sent = conn.execute("select pgidem.idem_complete(%s, %s, %s, %s) as body", done).fetchone()
        tag = conn.execute("commit").statusmessage
        if tag != "COMMIT":  # an aborted transaction says ROLLBACK here, and raises nothing
            raise RuntimeError(f"COMMIT was answered by {tag}: nothing took effect")
        return status, sent.body, {}
    except Refused as refused:
        conn.execute("rollback")
        final = (*claim, refused.args[0], json.dumps(refused.args[1]))
        return answer(conn.execute("select * from pgidem.idem_save_final(%s, %s, %s, %s, %s, %s)", final).fetchone())
    finally:
        if not conn.closed:
            conn.rollback()  # does nothing after COMMIT


def pay(conn, key, request):
    def operation(conn):
        made = conn.execute("insert into payment (amount) values (%s) returning id", [request["amount"]]).fetchone()
        if request["amount"] > 1000:
            raise Refused(403, {"code": "over_the_limit"})
        return 201, {"payment": made.id}

    return keyed(conn, (ALICE, key, "create_payment", fingerprint("POST", "/payments", request)), operation)


if __name__ == "__main__":
    db = psycopg.connect(os.environ.get("DATABASE_URL", ""), autocommit=True, row_factory=namedtuple_row)
    db.execute("create table if not exists payment (id integer generated always as identity, amount integer not null)")
    db.execute("select pgidem.register_principal(%s)", (ALICE,))
    one, two = str(uuid.uuid4()), str(uuid.uuid4())  # the client makes them, one for each thing that it wants done
    tour = [("first", one, 5), ("repeat", one, 5), ("reuse", one, 6), ("refused", two, 5000), ("repeat", two, 5000)]
    for name, key, amount in [("given", sys.argv[1], 5)] if sys.argv[1:] else tour:
        status, body, headers = pay(db, key, {"to": "bob", "amount": amount})
        print(f"{name}:", status, body, json.dumps(headers))

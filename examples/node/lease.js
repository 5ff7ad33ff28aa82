// A payout by a provider elsewhere: the claim is committed before the provider is asked, and holds for a lease.
//
// DATABASE_URL, or libpq's variables, name a database with pgidem. One request with KEY, or a tour: node lease.js [KEY]
'use strict'
const { createHash, randomUUID } = require('node:crypto')
const { Pool } = require('pg')

class NothingHappened extends Error {} // the operation failed, and surely before its effect
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest()

// What to send for an outcome: status, body, headers.
function answer({ outcome, response_status, content_type, location, etag, response_body, one_time_secret, retry_after }) {
  if (outcome === 'replay' && one_time_secret) return [409, '{"code": "conflict", "reason": "one_time_secret"}', { 'Idempotent-Replayed': 'true' }]
  if (outcome === 'stored' || outcome === 'replay') {
    const headers = { 'Content-Type': content_type, Location: location, ETag: etag, 'Idempotent-Replayed': outcome === 'replay' && 'true' }
    return [response_status, response_body, Object.fromEntries(Object.entries(headers).filter(([, value]) => value))]
  }
  if (outcome === 'reused') return [422, '{"code": "idempotency-key-reused"}', {}]
  return [409, '{"code": "idempotency-in-progress"}', { 'Retry-After': String(retry_after) }]
}

// The key for the provider: the same in each run, and the same as in the Go shell (docs/fingerprints.md).
function downstreamKey(user, key, fingerprint) {
  const raw = sha256(`${user}\n${key}\n${fingerprint.toString('hex')}`)
  raw[6] = raw[6] & 0x0f | 0x80 // UUID version 8
  raw[8] = raw[8] & 0x3f | 0x80
  return raw.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

// Runs operation(downstream key) under a lease. Each statement goes to the pool, not to a client with an open transaction: so it
// commits by itself, the claim before the operation begins. Where that is not sure, call pgidem.idem_claim_committed.
async function keyed(pool, user, key, fingerprint, operation) {
  const { rows: [claim] } = await pool.query('select * from pgidem.idem_claim($1, $2, $3)', [user, key, fingerprint])
  if (claim.outcome !== 'claimed') return answer(claim)
  let response
  try {
    response = await operation(downstreamKey(user, key, fingerprint))
  } catch (error) {
    // Any other error goes up and leaves the claim, since nobody knows what the provider did. Repeats get 409 until the lease
    // ends; then one of them asks the provider again, which is why the downstream key is the same each time.
    if (!(error instanceof NothingHappened)) throw error
    await pool.query('select pgidem.idem_release($1, $2, $3)', [user, key, claim.token])
    return [503, '{"code": "service_unavailable"}', { 'Retry-After': '1' }]
  }
  const { rows: [done] } = await pool.query('select * from pgidem.idem_finish($1, $2, $3, $4, $5, $6, null, $7)',
    [user, key, claim.token, response.status, 'application/json', response.location, Buffer.from(response.body)])
  return answer(done) // without the outcome stored the lease was lost: what is recorded now counts, not our response
}

function payout(pool, charge, key, rawBody) {
  const { amount } = JSON.parse(rawBody) // what is malformed is refused before a claim
  // docs/fingerprints.md, public API contract: the bytes as they came, and the third line is the query, here none.
  return keyed(pool, 'alice', key, sha256('POST\n/payouts\n\n', rawBody), async (downstream) => {
    if (amount > 1000) return { status: 422, body: '{"code": "over_the_limit"}' }
    const number = await charge(downstream, amount)
    return { status: 201, location: `/payouts/${number}`, body: JSON.stringify({ payout: number }) }
  })
}

async function main(given) {
  const connection = { connectionString: process.env.DATABASE_URL }
  const [pool, books] = [new Pool(connection), new Pool(connection)] // books: the provider's, which no rollback of ours touches
  await books.query('create table if not exists provider_charge (downstream_key text primary key, amount integer)')

  async function provider(key, amount) { // one that takes idempotency keys: the second line, for a worker that dies now
    await books.query('insert into provider_charge values ($1, $2) on conflict do nothing', [key, amount])
    return key.slice(0, 8)
  }
  async function outage() { throw new NothingHappened() }
  const [one, two] = [randomUUID(), randomUUID()]
  const tour = [['outage', outage, one, 5], ['first', provider, one, 5], ['repeat', provider, one, 5], ['reuse', provider, one, 6],
    ['refused', provider, two, 5000], ['repeat', provider, two, 5000]]
  for (const [name, charge, key, amount] of given ? [['given', provider, given, 5]] : tour) {
    const [status, body, headers] = await payout(pool, charge, key, `{"amount": ${amount}}`)
    console.log(`${name}:`, status, String(body), JSON.stringify(headers))
  }
  await Promise.all([pool.end(), books.end()])
}

main(process.argv[2])

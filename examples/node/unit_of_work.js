// A payment that is made once, however often its request comes: claim, effect and answer are one transaction.
//
// DATABASE_URL, or libpq's variables, name a database with pgidem. One request with KEY, or a tour: node unit_of_work.js [KEY]
'use strict'
const { createHash, randomUUID } = require('node:crypto')
const { Client } = require('pg')

const alice = '0192f0c1-2345-7abc-8def-0123456789ab' // who is logged in; every key is somebody's

// A final no of the operation: what it wrote is rolled back, the answer is kept.
class Refused extends Error {
  constructor(status, problem) { Object.assign(super(problem.code), { status, problem }) }
}

// docs/fingerprints.md, Sync contract. Sorted members, no spaces, whole numbers, ASCII: of such a flat body this is the
// canonical form. Bodies that clients write need RFC 8785 (package canonicalize) and the rules of that page.
function fingerprint(method, path, body) {
  const canonical = JSON.stringify(body, Object.keys(body).sort())
  return createHash('sha256').update(`${method}\n${path}\n${canonical}`).digest()
}

// What to send when the operation did not run here: status, body, headers.
function answer({ outcome, response_status, response_body, one_time_secret, retry_after }) {
  if (one_time_secret) return [409, '{"code": "conflict", "reason": "one_time_secret"}', { 'Idempotent-Replay': 'true' }]
  if (outcome === 'stored') return [response_status, response_body, {}]
  if (outcome === 'replay') return [response_status, response_body, { 'Idempotent-Replay': 'true' }]
  if (outcome === 'reused') return [422, '{"code": "idempotency_key_reuse"}', {}]
  return [409, '{"code": "request_in_progress"}', { 'Retry-After': String(retry_after) }]
}

// Runs operation(client) once per key; claim is principal, key, action, fingerprint. Not with a pool, but with what its connect()
// gives. Errors go up: 40001, 40P01, 55P03, 25006 and a lost connection are a 503, others a 500, and repeats are safe.
async function keyed(client, claim, operation) {
  let open = true
  await client.query('begin')
  try {
    const { rows: [found] } = await client.query('select * from pgidem.idem_begin($1, $2, $3, $4)', claim)
    if (found.outcome !== 'claimed') return answer(found)
    const [status, body] = await operation(client)
    const done = [...claim.slice(0, 2), status, JSON.stringify(body)]
    const { rows: [sent] } = await client.query('select pgidem.idem_complete($1, $2, $3, $4) as body', done)
    const { command } = await client.query('commit')
    // An aborted transaction says ROLLBACK here, and throws nothing.
    if (command !== 'COMMIT') throw new Error(`COMMIT was answered by ${command}: nothing took effect`)
    open = false
    return [status, sent.body, {}]
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    await client.query('rollback')
    open = false
    const final = [...claim, error.status, JSON.stringify(error.problem)]
    return answer((await client.query('select * from pgidem.idem_save_final($1, $2, $3, $4, $5, $6)', final)).rows[0])
  } finally {
    if (open) await client.query('rollback').catch(() => client.end()) // a connection that is gone
  }
}

function pay(client, key, request) {
  return keyed(client, [alice, key, 'create_payment', fingerprint('POST', '/payments', request)], async () => {
    const made = await client.query('insert into payment (amount) values ($1) returning id', [request.amount])
    if (request.amount > 1000) throw new Refused(403, { code: 'over_the_limit' })
    return [201, { payment: made.rows[0].id }]
  })
}

async function main(given) {
  const client = new Client(process.env.DATABASE_URL)
  await client.connect()
  await client.query('create table if not exists payment (id integer generated always as identity, amount integer not null)')
  await client.query('select pgidem.register_principal($1)', [alice])
  const [one, two] = [randomUUID(), randomUUID()] // the client makes them, one for each thing that it wants done
  const tour = [['first', one, 5], ['repeat', one, 5], ['reuse', one, 6], ['refused', two, 5000], ['repeat', two, 5000]]
  for (const [name, key, amount] of given ? [['given', given, 5]] : tour) {
    const [status, body, headers] = await pay(client, key, { to: 'bob', amount })
    console.log(`${name}:`, status, body, JSON.stringify(headers))
  }
  await client.end()
}

main(process.argv[2])

// Package goshell makes retries of HTTP requests safe: it puts the idempotency keys of pgidem in front of any
// net/http handler. A client sends Idempotency-Key; the operation behind it takes effect once, and every repeat gets
// the first answer.
//
// All rules live in PostgreSQL, in the functions of the schema pgidem (install them with package
// github.com/pgidem/pgidem/goshell/migrate or with psql). The shell computes the fingerprint of the request, calls the
// functions and holds the response back until the database has confirmed it.
//
// # Modes
//
// [UnitOfWork] and [UnitOfWorkBytes] are for effects that are rows of this database: claim, effect and response are one
// transaction. [Leased] is for effects elsewhere: see [Claim.DownstreamKey] and [Claim.Keep]. What follows is about the
// first two.
//
// # The life of a keyed request
//
//  1. The header is checked, the body read, the fingerprint computed.
//  2. BEGIN and idem_begin travel together. A stored response is answered at once (replay), as is a key that was used
//     for another request (422) or that is still running when the wait is over (409).
//  3. Claimed: the handler runs, with the transaction of the claim in its context ([FromContext], [InTx]). What it
//     writes to the response is buffered.
//  4. A 2xx travels to the database with COMMIT: effect and response become durable together. A final 4xx is stored
//     after ROLLBACK, in the same trip. Anything else is rolled back and leaves the key free.
//  5. Only then does the client get a byte.
//
// So whatever dies in between leaves either the effect and its response, or neither.
//
// In the mode Leased the claim is committed first, and the handler runs outside any transaction. Its response is stored
// before the client gets a byte; a failure gives the key back. When the worker dies, the key is free at the end of the
// lease, and a worker that was only late can store and answer nothing any more.
//
// # What a handler must do
//
// Write effects through the claim's transaction; an effect elsewhere is not undone by a rollback. Do not stream, flush or
// hijack. Do not end the transaction. Return only when the work is done: http.TimeoutHandler, which answers while its
// handler still runs, belongs outside the shell.
//
// A handler may run again: an error that aborted the transaction (40001, 40P01, 55P03) makes the shell call it once more
// with the original body, and a client that hangs up cancels its context and with it a statement that runs. All that it
// did is rolled back then, so only what it did outside the transaction can happen twice. Once it has returned, nothing is
// cancelled any more.
package goshell

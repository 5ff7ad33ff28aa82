package goshell

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// claimTx is the transaction that a handler sees: all of a pgx.Tx but its end. It remembers the error with which the
// server asked for a new transaction, since afterwards the connection only says that the transaction is aborted.
type claimTx struct {
	tx     pgx.Tx
	state  *txState
	nested bool
}

// txState is shared by a transaction and those nested in it.
type txState struct {
	ctx context.Context // the handler's

	mu      sync.Mutex
	calls   int  // under way
	lent    bool // large objects
	ended   bool
	partial bool
	wanted  error
}

// note remembers an error that wants the transaction tried again from its start. Another error of the server takes its
// place: the first one was then undone by a savepoint, or nothing would have run after it.
//
// It also remembers that a statement was not sent because the handler's context is done, as after a hang-up. A handler
// that minds no error would commit the rest; pgx.Tx.Commit with the same context would not.
func (s *txState) note(err error) {
	if err != nil && s.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		s.setPartial()
	}
	state := sqlState(err)
	if state == "" || state == stateInFailedTransaction {
		return
	}
	if !wantsAnotherAttempt(err) {
		err = nil
	}
	s.mu.Lock()
	s.wanted = err
	s.mu.Unlock()
}

// noteEnd is note for the end of a nested transaction. When it was not sent, what was to be undone is still there.
func (s *txState) noteEnd(err error) {
	if err != nil && sqlState(err) == "" && !errors.Is(err, pgx.ErrTxClosed) {
		s.setPartial()
	}
	s.note(err)
}

func (s *txState) setPartial() {
	s.mu.Lock()
	s.partial = true
	s.mu.Unlock()
}

// isPartial tells whether less was done than the handler asked for, and the server knows nothing of it.
func (s *txState) isPartial() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partial
}

func (s *txState) retryError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted
}

// end closes the transaction to the handler. busy says that a call of it is still under way, in a goroutine that outlives
// it: that has the connection in its hands, so nothing else may use it any more. lent says that the handler took large
// objects, which go past claimTx.
func (s *txState) end() (busy, lent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.calls > 0, s.lent
}

// closedTx answers every call with pgx.ErrTxClosed.
var closedTx = func() pgx.Tx {
	var b pgx.Batch
	b.BeginTx(pgx.TxOptions{})
	return pgx.FailedBatchResults(&b, pgx.ErrTxClosed).Tx()
}()

// use returns the transaction for one call, and what to call afterwards. It returns a closed one when the shell has ended
// it, since the connection may serve another request by then, or when the handler has ended it by SQL text: what it did
// next would commit by itself, without the claim.
func (t *claimTx) use() (tx pgx.Tx, done func()) {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	if t.state.ended || t.tx.Conn().PgConn().TxStatus() == 'I' {
		return closedTx, func() {}
	}
	t.state.calls++
	return t.tx, func() {
		t.state.mu.Lock()
		defer t.state.mu.Unlock()
		t.state.calls--
	}
}

func (t *claimTx) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, done := t.use()
	defer done()
	nested, err := tx.Begin(ctx)
	t.state.note(err)
	if err != nil {
		return nil, err
	}
	return &claimTx{tx: nested, state: t.state, nested: true}, nil
}

func (t *claimTx) Commit(ctx context.Context) error {
	if !t.nested {
		return ErrTxManaged
	}
	tx, done := t.use()
	defer done()
	err := tx.Commit(ctx)
	t.state.noteEnd(err)
	return err
}

func (t *claimTx) Rollback(ctx context.Context) error {
	if !t.nested {
		return ErrTxManaged
	}
	tx, done := t.use()
	defer done()
	err := tx.Rollback(ctx)
	t.state.noteEnd(err)
	return err
}

func (t *claimTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tx, done := t.use()
	defer done()
	tag, err := tx.Exec(ctx, sql, args...)
	t.state.note(err)
	return tag, err
}

func (t *claimTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	tx, done := t.use()
	defer done()
	rows, err := tx.Query(ctx, sql, args...)
	t.state.note(err)
	return notingRows{rows, t.state}, err
}

func (t *claimTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	tx, done := t.use()
	defer done()
	return notingRow{tx.QueryRow(ctx, sql, args...), t.state}
}

func (t *claimTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	tx, done := t.use()
	defer done()
	return notingBatch{tx.SendBatch(ctx, b), t.state}
}

func (t *claimTx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error) {
	tx, done := t.use()
	defer done()
	n, err := tx.CopyFrom(ctx, table, columns, src)
	t.state.note(err)
	return n, err
}

func (t *claimTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	tx, done := t.use()
	defer done()
	d, err := tx.Prepare(ctx, name, sql)
	t.state.note(err)
	return d, err
}

func (t *claimTx) LargeObjects() pgx.LargeObjects {
	tx, done := t.use()
	defer done()
	t.state.mu.Lock()
	t.state.lent = true
	t.state.mu.Unlock()
	return tx.LargeObjects()
}

func (t *claimTx) Conn() *pgx.Conn {
	tx, done := t.use()
	defer done()
	return tx.Conn()
}

type notingRows struct {
	pgx.Rows
	state *txState
}

func (r notingRows) Next() bool {
	ok := r.Rows.Next()
	if !ok {
		r.state.note(r.Rows.Err())
	}
	return ok
}

func (r notingRows) Close() {
	r.Rows.Close()
	r.state.note(r.Rows.Err())
}

type notingRow struct {
	row   pgx.Row
	state *txState
}

func (r notingRow) Scan(dest ...any) error {
	err := r.row.Scan(dest...)
	r.state.note(err)
	return err
}

type notingBatch struct {
	pgx.BatchResults
	state *txState
}

func (b notingBatch) Exec() (pgconn.CommandTag, error) {
	tag, err := b.BatchResults.Exec()
	b.state.note(err)
	return tag, err
}

func (b notingBatch) Query() (pgx.Rows, error) {
	rows, err := b.BatchResults.Query()
	b.state.note(err)
	return notingRows{rows, b.state}, err
}

func (b notingBatch) QueryRow() pgx.Row {
	return notingRow{b.BatchResults.QueryRow(), b.state}
}

func (b notingBatch) Close() error {
	err := b.BatchResults.Close()
	b.state.note(err)
	return err
}

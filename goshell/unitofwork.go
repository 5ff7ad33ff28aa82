package goshell

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// unit is one pooled connection and the transaction on it.
type unit struct {
	shell *Shell
	conn  *pgxpool.Conn
	tx    pgx.Tx // nil before BEGIN
	lent  bool   // the handler has large objects, which hold tx itself
}

// errOutcomeUnknown: COMMIT was sent and its success cannot be told.
var errOutcomeUnknown = fmt.Errorf("%w: an error came, or the connection was lost, while it was under way", ErrCommit)

// acquire takes a connection from the pool.
func (s *Shell) acquire(ctx context.Context) (*unit, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AcquireTimeout)
	defer cancel()
	for {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: no connection: %w", ErrUnavailable, err)
		}
		u := &unit{shell: s, conn: conn}
		if u.txStatus() == 'I' {
			return u, nil
		}
		// BEGIN in an open transaction is only a warning: this request would join that of another.
		u.destroy()
	}
}

// txStatus is 'I' outside a transaction, 'T' inside, 'E' in an aborted one, 0 when the connection is lost.
func (u *unit) txStatus() byte {
	if u.conn.Conn().IsClosed() {
		return 0
	}
	return u.conn.Conn().PgConn().TxStatus()
}

// release gives the connection back; the pool destroys it unless it is idle.
func (u *unit) release() {
	if u.lent && u.txStatus() == 'I' {
		// The transaction was ended by SQL, of which the object knows nothing yet: without a trip this closes it, and with it
		// the large objects that a handler may have kept.
		_ = u.tx.Commit(canceled)
	}
	u.conn.Release()
}

var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// closeLimit bounds the end of a connection that is given up. Nothing waits for it.
const closeLimit = 5 * time.Second

// abandon takes a connection that somebody else still uses out of the pool and closes it, which makes the server roll
// back. The statement that runs there is cancelled first, or it would block the key as long: the server does not notice
// that nobody waits any more, and PgBouncer knows no cancel for a client that is gone.
func (u *unit) abandon() {
	conn := u.conn.Hijack().PgConn()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		_ = conn.CancelRequest(ctx)
		_ = conn.Conn().Close()
	}()
}

// destroy takes the connection out of the pool and closes it, which makes the server roll back. Where pgx has given it up
// before, it gets the time to cancel the statement that ran there; over a link that has fallen silent it would take 15
// seconds, and the pool would be one connection short for as long.
func (u *unit) destroy() {
	conn := u.conn.Hijack().PgConn()
	if !conn.IsClosed() {
		_ = conn.Conn().Close()
		return
	}
	go func() {
		select {
		case <-conn.CleanupDone():
		case <-time.After(closeLimit):
			_ = conn.Conn().Close()
		}
	}()
}

// begin opens the transaction and claims the key in one trip. In the mode Leased the claim is a transaction of its own.
func (u *unit) begin(ctx context.Context, req Request) (Entry, error) {
	b := &pgx.Batch{}
	after := byte('I')
	if u.shell.cfg.Mode != Leased {
		after = 'T'
		b.BeginTx(u.shell.cfg.TxOptions)
		b.Queue(sqlIdleTimeout + strconv.FormatInt((u.shell.cfg.HandlerLimit+idleMargin).Milliseconds(), 10))
	}
	var (
		entry Entry
		bound float64 // seconds
	)
	u.shell.cfg.Mode.table().begin(req).queue(b, &entry)
	_, learn := u.shell.wait.get()
	if learn {
		b.Queue(sqlLockTimeout).QueryRow(func(row pgx.Row) error { return row.Scan(&bound) })
	}
	br := u.conn.SendBatch(ctx, b)
	// No result is true before the batch has closed without error.
	if err := br.Close(); err != nil {
		return Entry{}, err
	}
	if u.txStatus() != after {
		return Entry{}, fmt.Errorf("the transaction status after the claim is %q", u.txStatus())
	}
	if learn {
		u.shell.wait.learn(seconds(bound))
	}
	if after == 'T' {
		u.tx = br.Tx()
	}
	return entry, nil
}

// complete stores the response and commits in one trip. errOutcomeUnknown says that nobody knows whether it committed;
// after any other error nothing took effect, and the transaction is still to be rolled back.
func (u *unit) complete(ctx context.Context, req Request, claimed Entry, resp Response) (Response, error) {
	var (
		stored    Response
		completed bool
		tag       string
		b         pgx.Batch
	)
	complete := u.shell.cfg.Mode.table().complete(req, claimed, resp)
	b.Queue(complete.sql, complete.args...).QueryRow(func(row pgx.Row) (err error) {
		stored, err = complete.read(row)
		completed = err == nil
		return err
	})
	// In one batch: when the function raises, the server skips COMMIT. Sent alone, COMMIT would answer ROLLBACK without
	// an error in an aborted transaction.
	b.Queue(sqlCommit).Exec(func(t pgconn.CommandTag) error {
		tag = t.String()
		return nil
	})
	err := u.conn.SendBatch(ctx, &b).Close()
	switch {
	case err != nil && (u.txStatus() == 0 || tag == "COMMIT"):
		// With its tag read the COMMIT is done, whatever the server reports behind it, such as a late cancel.
		return Response{}, fmt.Errorf("%w: %w", errOutcomeUnknown, err)
	case err != nil && completed:
		return Response{}, fmt.Errorf("%w: %w", ErrCommit, storeError(err))
	case err != nil:
		return Response{}, err
	case u.txStatus() != 'I' || tag != "COMMIT":
		return Response{}, fmt.Errorf("%w: its answer is %s", ErrCommit, tag)
	}
	return stored, nil
}

// rollback ends the transaction and gives the connection back, or destroys it when the server does not confirm.
func (u *unit) rollback(ctx context.Context) {
	if u.txStatus() != 'I' {
		if _, err := u.conn.Exec(ctx, sqlRollback); err != nil {
			u.destroy()
			return
		}
	}
	u.release()
}

// saveFinal rolls back and stores the final 4xx, in one trip where it can.
func (u *unit) saveFinal(ctx context.Context, req Request, resp Response) (Entry, error) {
	var (
		b     pgx.Batch
		entry Entry
		tag   = "COMMIT"
	)
	switch u.txStatus() {
	case 'T':
		b.Queue(sqlRollback)
	case 'E':
		// An aborted transaction refuses to parse anything but its end.
		if _, err := u.conn.Exec(ctx, sqlRollback); err != nil {
			return Entry{}, err
		}
	}
	// A role may be read-only unless a transaction says otherwise.
	explicit := u.shell.cfg.TxOptions.AccessMode == pgx.ReadWrite
	if explicit {
		b.Queue(sqlBeginWrite)
	}
	u.shell.cfg.Mode.table().saveFinal(req, resp).queue(&b, &entry)
	if explicit {
		b.Queue(sqlCommit).Exec(func(t pgconn.CommandTag) error {
			tag = t.String()
			return nil
		})
	}
	if err := u.conn.SendBatch(ctx, &b).Close(); err != nil {
		return Entry{}, err
	}
	if tag != "COMMIT" {
		return Entry{}, fmt.Errorf("the answer to COMMIT is %s", tag)
	}
	if u.txStatus() != 'I' {
		return Entry{}, errors.New("a transaction is open after ROLLBACK")
	}
	return entry, nil
}

package migrate

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3/lock"
)

// lockID is the advisory lock of pgidem's migrators: the first 8 bytes of the SHA-256 of "pgidem migrate". goose's own
// number is shared by all who use goose: an application that migrates pgidem from inside a migration of its own would
// wait for itself.
const lockID int64 = 3515847363677139126

// ErrLocked says that another process kept migrating this database for longer than Up was willing to wait.
var ErrLocked = errors.New("another migration of pgidem is still running")

// locker is goose's session lock that says when it has to wait, and for what it waited in vain.
type locker struct {
	lock.SessionLocker
	log  *slog.Logger
	wait time.Duration
}

func newLocker(o options) (*locker, error) {
	if o.wait < time.Second || o.wait%time.Second != 0 {
		return nil, fmt.Errorf("lock wait %v: want whole seconds, at least one", o.wait)
	}
	inner, err := lock.NewPostgresSessionLocker(
		lock.WithLockID(lockID),
		lock.WithLockTimeout(1, uint64(o.wait/time.Second)), // once a second
	)
	return &locker{inner, o.log, o.wait}, err
}

// SessionLock implements lock.SessionLocker.
func (l *locker) SessionLock(ctx context.Context, conn *stdsql.Conn) error {
	note := time.AfterFunc(time.Second, func() {
		l.log.InfoContext(ctx, "waiting for another migration to finish", "at_most", l.wait)
	})
	defer note.Stop()
	start := time.Now()
	err := l.SessionLocker.SessionLock(ctx, conn)
	if err != nil && ctx.Err() == nil && time.Since(start) >= l.wait {
		return fmt.Errorf("%w after %v (advisory lock %d): let it finish and run this again", ErrLocked, l.wait, lockID)
	}
	return err
}

package goshell

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrInProgress says that another request with the key still runs: answer 409 and let the client repeat.
	ErrInProgress = errors.New("goshell: a request with this key is in progress")

	// ErrKeyReused says that the key was used for another request: answer 422, a repeat is hopeless.
	ErrKeyReused = errors.New("goshell: the key was used for another request")

	// ErrUnavailable says that the store could not be asked, or could not be told; nothing is known to have taken effect.
	// Answer 503: a repeat with the same key is safe.
	ErrUnavailable = errors.New("goshell: the store of idempotency keys is not available")

	// ErrClaimLost says that the key is not claimed in the transaction that should complete it. SQLSTATE ID001.
	ErrClaimLost = errors.New("goshell: the transaction does not hold the claim: it was ended or rolled back to a savepoint by the handler")

	// ErrLeaseLost says that a claim of the mode Leased has ended before its work: its lease ran out or another request took
	// it over. SQLSTATE ID003.
	ErrLeaseLost = errors.New("goshell: the lease is lost: another request may run the operation")

	// ErrUnknownPrincipal says that the principal is not in the table that the foreign key points to.
	ErrUnknownPrincipal = errors.New("goshell: unknown principal: call pgidem.register_principal, or pgidem.attach_principals once for your own table of users")

	// ErrTxManaged is returned by Commit and Rollback of the claim's transaction, which the shell ends.
	ErrTxManaged = errors.New("goshell: the shell ends this transaction: return a response with the status that says what should happen")

	// ErrRollbackOnly says that a function given to InTx failed in the claim's transaction, which cannot be committed then.
	ErrRollbackOnly = errors.New("goshell: a function given to InTx failed, so the transaction can only be rolled back: answer with an error status")

	// ErrCommit says that COMMIT failed, or that its answer was lost and what became of it could not be found out.
	ErrCommit = errors.New("goshell: COMMIT failed")

	// ErrResponse says that a response cannot be stored and replayed as it is.
	ErrResponse = errors.New("goshell: the response cannot be stored")
)

// SQLSTATEs that decide something. The codes of class ID are pgidem's own.
const (
	stateClaimLost            = "ID001"
	stateLeaseLost            = "ID003"
	stateForeignKeyViolation  = "23503"
	stateInFailedTransaction  = "25P02"
	stateSerializationFailure = "40001"
	stateDeadlockDetected     = "40P01"
	stateUndefinedFunction    = "42883"
	stateLockNotAvailable     = "55P03"
)

// principalConstraint is the foreign key that an unknown principal violates at COMMIT.
const principalConstraint = "idempotency_keys_principal_id_fkey"

// sqlState returns the SQLSTATE of a server error, "" for any other error.
func sqlState(err error) string {
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return ""
}

// wantsNewTransaction tells whether the server asks for the transaction to be tried again from its start.
func wantsNewTransaction(err error) bool {
	switch sqlState(err) {
	case stateSerializationFailure, stateDeadlockDetected:
		return true
	}
	return false
}

// wantsAnotherAttempt tells whether the error that ended an attempt lets the shell try again: also a lock that the
// handler's work could not get, in a statement or at COMMIT.
func wantsAnotherAttempt(err error) bool {
	return wantsNewTransaction(err) || sqlState(err) == stateLockNotAvailable
}

// storeError maps a server error to a sentinel where there is one. Only Error() of other server errors is ever shown: it
// leaves out the detail and the context, which can hold values of the application.
func storeError(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch {
	case pg.Code == stateClaimLost:
		return ErrClaimLost
	case pg.Code == stateLeaseLost:
		return ErrLeaseLost
	case pg.Code == stateForeignKeyViolation && pg.ConstraintName == principalConstraint:
		return ErrUnknownPrincipal
	}
	return err
}

// bodyError says of an error of the call that carries a body whether it is the body that jsonb refuses: not JSON, a NUL
// escape, a number out of range, too deep, not UTF-8, too large.
func bodyError(err error) error {
	switch sqlState(err) {
	case "22P02", "22P05", "22003", "54001", "22021", "54000":
		return fmt.Errorf("%w: the body is not JSON that jsonb can hold (the mode UnitOfWork stores JSON only; any other body needs UnitOfWorkBytes): %w", ErrResponse, err)
	}
	return err
}

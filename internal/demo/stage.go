package demo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// stage is what the steps of the script play on. After an error, which ends the play, its methods do nothing.
type stage struct {
	out    *printer
	ctx    context.Context
	pool   *pgxpool.Pool
	server func() *exec.Cmd // makes the command that serves the API
	api    *child
	others []*child // servers that were stopped

	paid     request // the payment of the first steps
	receipt  answer  // and its answer
	payments int     // how many there were when they were last counted
	charges  int     // of the provider, likewise

	hold, all int // expectations
	err       error
}

// send sends a request and shows it and its answer.
func (s *stage) send(r request) answer {
	if s.err != nil {
		return answer{}
	}
	s.ask(r)
	return s.take(s.start(r))
}

// ask shows a request.
func (s *stage) ask(r request) {
	if s.err == nil {
		s.out.request(r)
	}
}

// note shows a remark.
func (s *stage) note(text string) {
	if s.err == nil {
		s.out.note(text)
	}
}

// start sends a request whose answer is taken later.
func (s *stage) start(r request) <-chan reply {
	came := make(chan reply, 1)
	if s.err != nil {
		return came
	}
	url := s.api.url
	go func() {
		a, err := r.send(s.ctx, url)
		came <- reply{a, err}
	}()
	return came
}

type reply struct {
	answer
	err error
}

// take waits for an answer and shows it.
func (s *stage) take(came <-chan reply) answer {
	if s.err != nil {
		return answer{}
	}
	r := <-came
	if s.err = r.err; s.err == nil {
		s.out.answer(r.answer)
	}
	return r.answer
}

func (s *stage) expect(what string, want, got any) {
	if s.err != nil {
		return
	}
	s.all++
	if want != got {
		s.out.broken(what, want, got)
		return
	}
	s.hold++
	s.out.held(what)
}

// expectRun expects an answer that was not stored before.
func (s *stage) expectRun(what string, status int, a answer) {
	s.expect(fmt.Sprintf("%d: %s", status, what), summary(status, false), a.summary())
}

// expectReplay expects an answer that was stored before.
func (s *stage) expectReplay(what string, status int, a answer) {
	s.expect(fmt.Sprintf("%d: %s", status, what), summary(status, true), a.summary())
}

// expectNone expects that the connection breaks before an answer has come.
func (s *stage) expectNone(what string, came <-chan reply) {
	if s.err != nil {
		return
	}
	got := "no answer"
	if r := <-came; r.err != nil {
		s.out.noAnswer()
	} else {
		s.out.answer(r.answer)
		got = r.summary()
	}
	s.expect(what, "no answer", got)
}

// expectPayments expects so many payments more than when they were last counted.
func (s *stage) expectPayments(more int) {
	s.expectMore("payments in the database", &s.payments, more, "select count(*) from pgidem_demo.payments")
}

// expectCharges expects so many charges of the provider more than when they were last counted.
func (s *stage) expectCharges(more int) {
	s.expectMore("charges in the books of the provider", &s.charges, more, countCharges)
}

const countCharges = "select count(*) from pgidem_demo.charges"

func (s *stage) expectMore(of string, last *int, more int, query string) {
	change := "none more"
	if more == 1 {
		change = "one more"
	}
	want, got := *last+more, s.count(query)
	s.expect(fmt.Sprintf("%s: %d, %s", of, want, change), want, got)
	*last = got
}

func (s *stage) count(query string, args ...any) (n int) {
	if s.err == nil {
		s.err = s.pool.QueryRow(s.ctx, query, args...).Scan(&n)
	}
	return n
}

// await polls until a query finds something.
func (s *stage) await(what, query string) {
	for deadline := time.Now().Add(30 * time.Second); s.err == nil && s.count(query) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.err = errors.New("not within 30 seconds: " + what)
		}
	}
}

// awaitEffect waits until a payment has written its row and not answered yet. The lock of the sequence that numbers
// payments tells: preparing the statement, which comes before, locks the table alone.
func (s *stage) awaitEffect() {
	s.await("a payment has written its row", `select count(*) from pg_stat_activity a join pg_locks l using (pid)
		where a.datname = current_database() and a.state = 'idle in transaction'
		and l.relation = 'pgidem_demo.payments_number_seq'::regclass`)
}

// holdProvider keeps the provider from charging, until it is released.
func (s *stage) holdProvider() (release func()) {
	if s.err != nil {
		return func() {}
	}
	tx, err := s.pool.Begin(s.ctx)
	if s.err = err; err != nil {
		return func() {}
	}
	if _, s.err = tx.Exec(s.ctx, "lock table pgidem_demo.charges in share mode"); s.err != nil {
		_ = tx.Rollback(context.WithoutCancel(s.ctx))
		return func() {}
	}
	return func() {
		if err := tx.Rollback(context.WithoutCancel(s.ctx)); s.err == nil {
			s.err = err
		}
	}
}

// awaitProvider waits until the provider that is held is asked for a charge.
func (s *stage) awaitProvider() {
	s.await("the provider is asked", `select count(*) from pg_locks
		where relation = 'pgidem_demo.charges'::regclass and not granted`)
}

// awaitCharge waits until there is a charge that was not counted yet.
func (s *stage) awaitCharge() {
	s.await("the provider has charged", fmt.Sprintf("select greatest(0, (%s) - %d)", countCharges, s.charges))
}

// awaitLeaseEnd waits until no payout is claimed any more that has no answer.
func (s *stage) awaitLeaseEnd() {
	s.await("the lease has ended", `select (not exists (select from pgidem.idempotency_record
		where state = 'in_progress' and live_until > clock_timestamp()))::integer`)
}

// stopServer makes the server stand still. It has to be resumed.
func (s *stage) stopServer() *child {
	if s.err != nil {
		return nil
	}
	stopped := s.api
	s.others = append(s.others, stopped)
	s.err = stopped.stop()
	return stopped
}

func (s *stage) resume(stopped *child) {
	if s.err == nil {
		s.err = stopped.resume()
	}
}

// killServer kills the server and waits until the database has noticed.
func (s *stage) killServer() {
	if s.err == nil {
		s.api.kill()
	}
	s.await("the database has noticed", `select (not exists (
		select from pg_stat_activity where application_name = '`+apiName+`'))::integer`)
}

func (s *stage) startServer() {
	if s.err != nil {
		return
	}
	api, err := startChild(s.ctx, s.server())
	if s.err = err; err == nil {
		s.api = api
	}
}

// play plays the script, and says whether every expectation held.
func (s *stage) play() error {
	started := time.Now()
	for i, step := range script {
		s.out.heading(i+1, step.title)
		if step.play(s); s.err != nil || s.out.err != nil {
			return errors.Join(s.err, s.out.err)
		}
	}
	return s.sum(time.Since(started))
}

// sum shows how many expectations held, and returns an error unless all of them did.
func (s *stage) sum(took time.Duration) error {
	style, broken := green, s.all-s.hold
	if broken > 0 {
		style = red
	}
	s.out.printf("\n%s", s.out.paint(style, fmt.Sprintf("%d of %d expectations held, in %.0f seconds.", s.hold, s.all, took.Seconds())))
	if broken > 0 {
		return fmt.Errorf("%d of %d expectations did not hold", broken, s.all)
	}
	return nil
}

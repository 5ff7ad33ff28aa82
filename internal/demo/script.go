package demo

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// step is one scene of the play.
type step struct {
	title string
	play  func(*stage)
}

// script is the play. Every step leaves as many payments as it says to expectPayments.
var script = []step{
	{"A payment runs, and its answer is stored with it", (*stage).firstRun},
	{"The answer got lost: the client sends the same again", (*stage).replay},
	{"The same key for another payment", (*stage).otherBody},
	{"The same payment, spelled differently", (*stage).otherSpelling},
	{"Impatient: twice at the same time", (*stage).twoAtOnce},
	{"The first takes longer than a repeat may wait (here 1 second)", (*stage).slowFirst},
	{"A refusal is final, and the row of the refused payment vanishes", (*stage).finalRefusal},
	{"The bank fails: that is not kept, so the retry runs", (*stage).failure},
	{"More proof is needed: the retry brings it, with the same key", (*stage).stepUp},
	{"A secret that is shown once", (*stage).secret},
	{"kill -9 in the middle of a payment", (*stage).killed},
	{"Notes are plain text: any answer can be stored", (*stage).plainText},
	{"A payout by a provider elsewhere, which no rollback undoes: a lease", (*stage).leased},
	{"kill -9 when the provider has charged, and nobody wrote it down", (*stage).killedPayout},
	{"The same, with a provider that looks at no keys", (*stage).carelessProvider},
	{"A worker that comes late does not overwrite its successor", (*stage).lateWorker},
}

func (s *stage) firstRun() {
	s.paid = payment(`{"amount":1250,"currency":"EUR","to":"bob"}`)
	s.receipt = s.send(s.paid)
	s.expectRun("the handler ran", http.StatusCreated, s.receipt)
	s.expectPayments(+1)
}

func (s *stage) replay() {
	again := s.send(s.paid)
	s.expectReplay("a replay, the handler did not run", http.StatusCreated, again)
	s.expect("the same body, byte for byte", s.receipt.body, again.body)
	s.expectPayments(0)
}

func (s *stage) otherBody() {
	other := s.paid
	other.body = `{"amount":9999,"currency":"EUR","to":"bob"}`
	s.expectRun("refused, a key stands for one request", http.StatusUnprocessableEntity, s.send(other))
	s.expectPayments(0)
}

func (s *stage) otherSpelling() {
	same := s.paid
	same.body = `{ "to": "b\u006fb", "amount": 1.25e3, "currency": "EUR" }`
	again := s.send(same)
	s.expectReplay("a replay, for equal JSON is the same request", http.StatusCreated, again)
	s.expect("the same body, byte for byte", s.receipt.body, again.body)
	s.expectPayments(0)
}

func (s *stage) twoAtOnce() {
	twice := payment(`{"amount":700,"currency":"EUR","to":"amy","slow_ms":400}`)
	s.ask(twice)
	s.ask(twice)
	one, two := s.start(twice), s.start(twice)
	first, second := s.take(one), s.take(two)
	if first.header.Get("Idempotent-Replay") != "" {
		first, second = second, first
	}
	s.expectRun("one of the two ran", http.StatusCreated, first)
	s.expectReplay("the other waited for it and is a replay", http.StatusCreated, second)
	s.expect("the same body, byte for byte", first.body, second.body)
	s.expectPayments(+1)
}

func (s *stage) slowFirst() {
	slow := payment(`{"amount":800,"currency":"EUR","to":"tom","slow_ms":2500}`)
	s.ask(slow)
	first := s.start(slow)
	s.awaitEffect()
	s.note("no answer yet: the same once more")
	early := s.send(slow)
	s.expectRun("still running, come back later", http.StatusConflict, early)
	s.expect("it says when: Retry-After is 1 second", "1", early.header.Get("Retry-After"))
	s.note("the answer of the first")
	s.expectRun("the first was not disturbed", http.StatusCreated, s.take(first))
	s.note("the client comes back")
	s.expectReplay("a replay", http.StatusCreated, s.send(slow))
	s.expectPayments(+1)
}

func (s *stage) finalRefusal() {
	lost := payment(`{"amount":900,"currency":"EUR","to":"nobody"}`)
	s.note("the handler has written its row when it finds out that there is nobody")
	first := s.send(lost)
	s.expectRun("the handler ran and refused", http.StatusNotFound, first)
	again := s.send(lost)
	s.expectReplay("a replay, the refusal was stored", http.StatusNotFound, again)
	s.expect("the same body, byte for byte", first.body, again.body)
	s.expectPayments(0)
}

func (s *stage) failure() {
	s.note("here too the row is written when the bank does not answer")
	unlucky := payment(`{"amount":500500,"currency":"EUR","to":"eve"}`)
	s.expectRun("failed, and the key is free again", http.StatusInternalServerError, s.send(unlucky))
	s.expectPayments(0)
	s.expectRun("the same key, and now it runs", http.StatusCreated, s.send(unlucky))
	s.expectPayments(+1)
}

func (s *stage) stepUp() {
	large := payment(`{"amount":2000000,"currency":"EUR","to":"jo"}`)
	s.expectRun("asked for more, and the key is free again", http.StatusUnauthorized, s.send(large))
	s.expectPayments(0)
	large.stepUp = true
	s.expectRun("the same key, and now it runs", http.StatusCreated, s.send(large))
	s.expectPayments(+1)
}

func (s *stage) secret() {
	once := request{method: http.MethodPost, path: "/api/v1/tokens", key: newKey(), body: "{}"}
	first := s.send(once)
	s.expectRun("here it is, for the only time", http.StatusCreated, first)
	again := s.send(once)
	s.expectReplay("a replay without the secret: make a new one", http.StatusConflict, again)

	var created struct{ Token string }
	if err := json.Unmarshal([]byte(first.body), &created); err != nil && s.err == nil {
		s.err = fmt.Errorf("read the token: %w", err)
	}
	s.expect("rows of pgidem's table in which the secret stands: 0", 0, s.count(
		"select count(*) from pgidem.idempotency_keys k where strpos(k::text, $1) > 0", created.Token))
	s.expect("tokens in the database: 1", 1, s.count("select count(*) from pgidem_demo.tokens"))
}

func (s *stage) killed() {
	doomed := payment(`{"amount":4200,"currency":"EUR","to":"ann","slow_ms":1500}`)
	s.ask(doomed)
	came := s.start(doomed)
	s.awaitEffect()
	s.note("its row is written, its answer is not: the server gets SIGKILL")
	s.killServer()
	s.expectNone("nobody was told anything", came)
	s.expectPayments(0)
	s.startServer()
	s.note("a new server has started: the client sends the same again")
	s.expectRun("it runs, nothing was left of the first try", http.StatusCreated, s.send(doomed))
	s.expectReplay("and once more, a replay", http.StatusCreated, s.send(doomed))
	s.expectPayments(+1)
}

func (s *stage) plainText() {
	note := request{method: http.MethodPost, path: "/api/v1/notes", key: "note-of-alice 1", body: "buy milk", plain: true}
	first := s.send(note)
	s.expectRun("the handler ran; the key may be any text", http.StatusCreated, first)
	again := s.send(note)
	s.expectReplay("a replay", http.StatusCreated, again)
	s.expect("the same body, byte for byte", first.body, again.body)
	s.expect("the same Location: "+first.header.Get("Location"), first.header.Get("Location"), again.header.Get("Location"))
	s.expect("notes in the database: 1", 1, s.count("select count(*) from pgidem_demo.notes"))
}

func (s *stage) leased() {
	paid := payout(`{"amount":3000,"to":"bob"}`)
	s.note("the claim is committed before the provider is asked")
	release := s.holdProvider()
	s.ask(paid)
	first := s.start(paid)
	s.awaitProvider()
	s.note("the provider takes its time: the same once more, and another one")
	s.expectRun("at once, nobody waits for somebody else's provider", http.StatusConflict, s.send(paid))
	other := paid
	other.body = `{"amount":9999,"to":"bob"}`
	s.expectRun("refused at once, a key stands for one request", http.StatusUnprocessableEntity, s.send(other))
	release()
	s.note("the provider is done")
	s.expectRun("the answer of the first", http.StatusCreated, s.take(first))
	s.expectReplay("a replay, the provider is not asked", http.StatusCreated, s.send(paid))
	s.expectCharges(+1)
}

// crashed plays a payout whose server dies when the provider has charged, until the lease has ended.
func (s *stage) crashed(doomed request) {
	s.ask(doomed)
	s.expectNone("nobody was told anything", s.start(doomed))
	s.killServer()
	s.expectCharges(+1)
	s.startServer()
	s.note("a new server has started: repeats get 409 until the lease ends")
	s.awaitLeaseEnd()
	s.note("it has ended: the client sends the same again")
}

func (s *stage) killedPayout() {
	doomed := payout(`{"amount":4000,"to":"ann","crash":true}`)
	s.crashed(doomed)
	again := s.send(doomed)
	s.expectRun("it runs, with the same key for the provider", http.StatusCreated, again)
	s.expectCharges(0)
	s.expectReplay("and once more, a replay", http.StatusCreated, s.send(doomed))
}

func (s *stage) carelessProvider() {
	doomed := payout(`{"amount":5000,"to":"tom","crash":true,"provider":"careless"}`)
	s.crashed(doomed)
	s.expectRun("it runs, as it has to: nobody here knows the charge", http.StatusCreated, s.send(doomed))
	s.expectCharges(+1)
	s.note("charged twice: that no lease can prevent, see docs/leases.md")
}

func (s *stage) lateWorker() {
	late := payout(`{"amount":6000,"to":"eve"}`)
	release := s.holdProvider()
	s.ask(late)
	first := s.start(late)
	s.awaitProvider()
	stopped := s.stopServer()
	release()
	s.note("the provider charges, while the server stands still (SIGSTOP)")
	s.awaitCharge()
	s.expectCharges(+1)
	s.startServer()
	s.awaitLeaseEnd()
	s.note("its lease has ended; another server has started: the same again")
	second := s.send(late)
	s.expectRun("the other took over", http.StatusCreated, second)
	s.note("the first server goes on, and is late")
	s.resume(stopped)
	told := s.take(first)
	s.expectReplay("its client gets what is recorded, not its own", http.StatusCreated, told)
	s.expect("the same body, byte for byte", second.body, told.body)
	s.expectCharges(0)
}

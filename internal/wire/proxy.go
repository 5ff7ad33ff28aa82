// Package wire is a TCP proxy between a client and its PostgreSQL server that counts and records round trips and can do
// to messages what networks do: delay them all, or lose a chosen one with its connection, cut it short, hold it back, or fall
// silent. It is for tests of what travels together and of what a loss leaves behind, and for measuring what a trip costs.
package wire

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Proxy forwards connections to a server.
type Proxy struct {
	listener net.Listener
	target   string

	mu       sync.Mutex
	healed   *sync.Cond
	heals    int // how often Heal was called
	conns    map[*connection]struct{}
	blackout bool
	trips    int
	records  []*Trip // nil: nothing is recorded
	fault    *armed
	tamper   func(Way, []byte) []byte
	delay    time.Duration // of new connections
}

// Trip is what was said in one round trip.
type Trip struct{ Ask, Answer []byte }

// Start returns a proxy in front of the server of a PostgreSQL URL, and the URL that leads through it.
func Start(t testing.TB, target string) (*Proxy, string) {
	t.Helper()
	p, through, err := New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, through
}

// New is Start outside a test. End the proxy with Close.
func New(target string) (p *Proxy, through string, err error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	p = &Proxy{listener: listener, target: u.Host, conns: map[*connection]struct{}{}}
	p.healed = sync.NewCond(&p.mu)
	go p.serve()
	u.Host = listener.Addr().String()
	return p, u.String(), nil
}

// Close takes no more connections; those that are there go on until either side ends them.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Heal()
}

// Delay lets each message of the connections that are made from now on arrive so much later, in either direction, as over a longer
// line: a trip takes twice that, and messages may follow each other on their way. Not together with Strike.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Trips runs f and returns how many round trips it took: how often the client spoke after the server had spoken. Requests
// to cancel come on connections of their own, at any time, and do not count.
func (p *Proxy) Trips(f func()) int { return len(p.Record(f)) }

// Record runs f and returns what was said in each of its round trips. Only one runs at a time.
func (p *Proxy) Record(f func()) []*Trip {
	p.mu.Lock()
	p.records = []*Trip{}
	p.mu.Unlock()
	f()
	p.mu.Lock()
	defer p.mu.Unlock()
	records := p.records
	p.records = nil
	return records
}

// Tamper lets f change each piece of what is said; f may work in place.
func (p *Proxy) Tamper(f func(way Way, piece []byte) []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tamper = f
}

// Strike arms a fault in place of any that has not struck yet. The returned channel is closed when it strikes.
func (p *Proxy) Strike(f Fault) (struck <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = &armed{Fault: f, trip: p.trips + f.Trip, struck: make(chan struct{})}
	return p.fault.struck
}

// Heal ends what a fault began and disarms one that has not struck: held messages pass, silent connections are closed on
// both sides, as keepalives would do in time, and new connections come through.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.blackout = nil, false
	p.heals++
	for c := range p.conns {
		if c.silent {
			c.close()
		}
	}
	p.healed.Broadcast()
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.connect(client)
	}
}

func (p *Proxy) connect(client net.Conn) {
	p.mu.Lock()
	for p.blackout {
		p.healed.Wait()
	}
	p.mu.Unlock()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &connection{proxy: p, client: client, server: server, answered: true}
	p.mu.Lock()
	p.conns[c] = struct{}{}
	delay := p.delay
	p.mu.Unlock()
	go c.forward(Answer, newLine(client, delay), server)
	c.forward(Ask, newLine(server, delay), client)
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

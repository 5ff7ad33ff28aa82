// Package wire is a TCP proxy between a client and its PostgreSQL server that counts and records round trips and can do
// to a chosen message what networks do: lose it with its connection, cut it short, hold it back, or fall silent. It is
// for tests of what travels together and of what a loss leaves behind.
package wire

import (
	"net"
	"net/url"
	"sync"
	"testing"
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
}

// Trip is what was said in one round trip.
type Trip struct{ Ask, Answer []byte }

// Start returns a proxy in front of the server of a PostgreSQL URL, and the URL that leads through it.
func Start(t testing.TB, target string) (*Proxy, string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, target: u.Host, conns: map[*connection]struct{}{}}
	p.healed = sync.NewCond(&p.mu)
	t.Cleanup(func() {
		_ = listener.Close()
		p.Heal()
	})
	go p.serve()
	u.Host = listener.Addr().String()
	return p, u.String()
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
	p.mu.Unlock()
	go c.forward(Answer, client, server)
	c.forward(Ask, server, client)
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

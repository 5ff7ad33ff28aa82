// Package wire is a TCP proxy between a client and its database that counts round trips, can hold messages back and can
// break a connection at a chosen message, for tests of what travels together and of what gets lost.
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

	mu    sync.Mutex
	trips int
	limit int // trips that may pass; what comes after is held back. Negative: no limit
	moved *sync.Cond

	cutTrip int // the trip that breaks its connection, 0 for none
	cutAsk  bool
	tamper  func([]byte) []byte
}

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
	p := &Proxy{listener: listener, target: u.Host, limit: -1}
	p.moved = sync.NewCond(&p.mu)
	t.Cleanup(func() {
		p.Release()
		_ = listener.Close()
	})
	go p.serve()
	u.Host = listener.Addr().String()
	return p, u.String()
}

// Trips runs f and returns how many round trips it took: how often the client spoke after the server had spoken.
func (p *Proxy) Trips(f func()) int {
	p.mu.Lock()
	before := p.trips
	p.mu.Unlock()
	f()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trips - before
}

// HoldAfter lets n more round trips pass and holds back what the client says then, until Release.
func (p *Proxy) HoldAfter(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = p.trips + n
}

// Release lets everything pass again.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = -1
	p.moved.Broadcast()
}

// CutAsk breaks the connection at the nth round trip from now, before the server hears it.
func (p *Proxy) CutAsk(n int) { p.cut(n, true) }

// CutAnswer breaks the connection at the nth round trip from now, when the server has answered and the client has heard
// nothing of it.
func (p *Proxy) CutAnswer(n int) { p.cut(n, false) }

func (p *Proxy) cut(n int, ask bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutTrip, p.cutAsk = p.trips+n, ask
}

// cuts tells, under the lock, whether the connection breaks now; only one does.
func (p *Proxy) cuts(ask bool) bool {
	if p.cutTrip == 0 || p.trips != p.cutTrip || p.cutAsk != ask {
		return false
	}
	p.cutTrip = 0
	return true
}

// Tamper lets f change each piece of what the server says.
func (p *Proxy) Tamper(f func([]byte) []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tamper = f
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		go p.connection(client, server)
	}
}

func (p *Proxy) connection(client, server net.Conn) {
	answered := true // the server spoke last, so the next word of the client begins a trip
	go func() {
		defer client.Close()
		forward(client, server, func(piece []byte) []byte {
			p.mu.Lock()
			defer p.mu.Unlock()
			answered = true
			if p.cuts(false) {
				return nil
			}
			if p.tamper != nil {
				return p.tamper(piece)
			}
			return piece
		})
	}()
	defer server.Close()
	defer client.Close()
	forward(server, client, func(piece []byte) []byte {
		p.mu.Lock()
		defer p.mu.Unlock()
		if answered {
			answered = false
			for p.limit >= 0 && p.trips >= p.limit {
				p.moved.Wait()
			}
			p.trips++
		}
		if p.cuts(true) {
			return nil
		}
		return piece
	})
}

// forward copies what pass makes of each piece, until one side ends or pass returns nothing.
func forward(to, from net.Conn, pass func([]byte) []byte) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			piece := pass(buf[:n])
			if piece == nil {
				return
			}
			if _, err := to.Write(piece); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

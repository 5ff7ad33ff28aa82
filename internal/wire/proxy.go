// Package wire is a TCP proxy between a client and its database that counts round trips and can hold messages back, for
// tests of what travels together.
package wire

import (
	"io"
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
		p.forward(client, server, func() { answered = true })
	}()
	defer server.Close()
	p.forward(server, client, func() {
		if answered {
			answered = false
			for p.limit >= 0 && p.trips >= p.limit {
				p.moved.Wait()
			}
			p.trips++
		}
	})
}

// forward copies, calling heard under the lock before each piece goes on.
func (p *Proxy) forward(to, from net.Conn, heard func()) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.mu.Lock()
			heard()
			p.mu.Unlock()
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				_ = to.Close()
			}
			return
		}
	}
}

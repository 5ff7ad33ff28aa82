package wire

import (
	"io"
	"net"
	"slices"
	"time"
)

// connection is one client's way to the server. The lock of the proxy guards it.
type connection struct {
	proxy          *Proxy
	client, server net.Conn
	answered       bool // the server spoke last, so the next word of the client begins a trip
	silent         bool
	spoken         bool // the client has
	aside          bool // it only asks to cancel what another connection does, whenever pgx gets round to it: no trip
}

func (c *connection) close() {
	_ = c.client.Close()
	_ = c.server.Close()
}

// forward copies what pass lets through, until one side ends or a fault ends both.
func (c *connection) forward(way Way, to io.WriteCloser, from net.Conn) {
	defer c.close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			piece, goOn := c.pass(way, buf[:n])
			if len(piece) > 0 {
				if _, err := to.Write(piece); err != nil {
					return
				}
			}
			if !goOn {
				return
			}
		}
		if err != nil {
			c.untilHealed()
			return
		}
	}
}

// pass returns what of a piece goes on now, and whether the connection does.
func (c *connection) pass(way Way, piece []byte) (out []byte, goOn bool) {
	p := c.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.silent {
		return nil, true
	}
	if way == Ask && !c.spoken {
		c.spoken, c.aside = true, isCancel(piece)
	}
	if c.aside {
		return piece, true
	}
	if way == Ask && c.answered {
		p.trips++
	}
	p.record(way, c.answered, piece)
	c.answered = way == Answer
	if p.tamper != nil {
		piece = p.tamper(way, piece)
	}
	f := p.fault
	if f == nil || f.Way != way || f.trip != p.trips {
		return piece, true
	}
	p.fault = nil
	close(f.struck)
	if f.Kind == Hold {
		for before := p.heals; p.heals == before; {
			p.healed.Wait()
		}
		return piece, true
	}
	passed := 0
	if f.Pass != nil {
		passed = f.Pass(piece)
	}
	switch f.Kind {
	case Blackout:
		p.blackout = true
		for other := range p.conns {
			other.silent = true
		}
	case Silence:
		c.silent = true
	}
	return piece[:passed], f.Kind != Cut
}

// record keeps a piece, under the lock.
func (p *Proxy) record(way Way, answered bool, piece []byte) {
	if p.records == nil {
		return
	}
	if way == Ask && answered {
		p.records = append(p.records, &Trip{})
	}
	if len(p.records) == 0 {
		return // the end of what was asked before
	}
	trip := p.records[len(p.records)-1]
	if way == Ask {
		trip.Ask = append(trip.Ask, piece...)
	} else {
		trip.Answer = append(trip.Answer, piece...)
	}
}

// untilHealed waits while the connection is silent: nobody hears that the other side is gone.
func (c *connection) untilHealed() {
	p := c.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.silent {
		for before := p.heals; p.heals == before; {
			p.healed.Wait()
		}
	}
}

// line is one direction of a connection that is longer than it is.
type line struct {
	to     io.Writer
	delay  time.Duration
	pieces chan delayed
	empty  chan struct{} // closed when all have arrived
}

type delayed struct {
	piece []byte
	due   time.Time
}

// newLine returns what writes to a connection after a delay. Close waits until what is on its way has arrived.
func newLine(to net.Conn, delay time.Duration) io.WriteCloser {
	if delay == 0 {
		return to
	}
	l := &line{to: to, delay: delay, pieces: make(chan delayed, 1024), empty: make(chan struct{})}
	go func() {
		defer close(l.empty)
		for d := range l.pieces {
			sleep(time.Until(d.due))
			_, _ = l.to.Write(d.piece) // the reader of the other direction sees the end, too
		}
	}()
	return l
}

func (l *line) Write(piece []byte) (int, error) {
	l.pieces <- delayed{slices.Clone(piece), time.Now().Add(l.delay)}
	return len(piece), nil
}

func (l *line) Close() error {
	close(l.pieces)
	<-l.empty
	return nil
}

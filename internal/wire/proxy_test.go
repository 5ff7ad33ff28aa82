package wire_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgidem/pgidem/internal/wire"
)

// patience bounds every wait for something that must happen; nothing waits for its end.
const patience = 30 * time.Second

// echo is a server that repeats what it hears.
type echo struct {
	url   string
	heard chan string   // one value for each piece
	ended chan struct{} // one value for each connection that ended
}

func newEcho(t *testing.T) *echo {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	e := &echo{url: "postgres://" + listener.Addr().String() + "/db?sslmode=disable", heard: make(chan string, 100), ended: make(chan struct{}, 100)}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close(); e.ended <- struct{}{} }()
				buf := make([]byte, 1<<10)
				for {
					n, err := conn.Read(buf)
					if err != nil {
						return
					}
					e.heard <- string(buf[:n])
					if _, err := conn.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return e
}

func dial(t *testing.T, proxied string) net.Conn {
	t.Helper()
	u, err := url.Parse(proxied)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", u.Host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}

func say(t *testing.T, conn net.Conn, word string) {
	t.Helper()
	_, err := io.WriteString(conn, word)
	require.NoError(t, err)
}

func hear(t *testing.T, conn net.Conn, word string) {
	t.Helper()
	buf := make([]byte, len(word))
	_, err := io.ReadFull(conn, buf)
	require.NoError(t, err)
	require.Equal(t, word, string(buf))
}

func talk(t *testing.T, conn net.Conn, word string) {
	t.Helper()
	say(t, conn, word)
	hear(t, conn, word)
}

func await[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		require.Fail(t, "waited in vain")
	}
	return v
}

// requireQuiet checks that nothing has come. It cannot see what comes later.
func requireQuiet[T any](t *testing.T, c <-chan T) {
	t.Helper()
	select {
	case v := <-c:
		require.Fail(t, "not quiet", "%v", v)
	default:
	}
}

func requireEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	rest, err := io.ReadAll(conn)
	require.Empty(t, rest)
	if err != nil {
		var timeout net.Error
		require.ErrorAs(t, err, &timeout)
		require.False(t, timeout.Timeout(), "the connection is still open")
	}
}

func TestProxy_CountsAndRecordsRoundTrips(t *testing.T) {
	p, through := wire.Start(t, newEcho(t).url)
	conn := dial(t, through)
	talk(t, conn, "before")
	records := p.Record(func() {
		talk(t, conn, "one")
		talk(t, conn, "two")
		talk(t, dial(t, through), "three")
	})
	var said [][2]string
	for _, r := range records {
		said = append(said, [2]string{string(r.Ask), string(r.Answer)})
	}
	require.Equal(t, [][2]string{{"one", "one"}, {"two", "two"}, {"three", "three"}}, said)
	require.Equal(t, 1, p.Trips(func() { talk(t, conn, "four") }))
	require.Zero(t, p.Trips(func() {}))
}

func TestProxy_CutBreaksTheConnectionAtOneMessage(t *testing.T) {
	for name, c := range map[string]struct {
		way   wire.Way
		pass  func([]byte) int
		heard string // by the server
		back  string // by the client
	}{
		"before the server hears it":    {wire.Ask, nil, "", ""},
		"half of it arrives":            {wire.Ask, wire.Half, "word", "word"},
		"before the client hears it":    {wire.Answer, nil, "wordword", ""},
		"half of the answer arrives":    {wire.Answer, wire.Half, "wordword", "word"},
		"after the client has heard it": {wire.Answer, func(m []byte) int { return len(m) }, "wordword", "wordword"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEcho(t)
			p, through := wire.Start(t, e.url)
			conn := dial(t, through)
			struck := p.Strike(wire.Fault{Trip: 2, Way: c.way, Pass: c.pass})
			talk(t, conn, "first")
			require.Equal(t, "first", await(t, e.heard))
			requireQuiet(t, struck)
			say(t, conn, "wordword")
			await(t, struck)
			await(t, e.ended)
			if c.heard != "" {
				require.Equal(t, c.heard, await(t, e.heard))
			}
			if c.way == wire.Answer {
				hear(t, conn, c.back)
			} else {
				_, _ = io.Copy(io.Discard, conn) // what the server says to half a message
			}
			requireEnd(t, conn)
			// It strikes once.
			talk(t, dial(t, through), "again")
		})
	}
}

func TestProxy_SilenceTellsNeitherSide(t *testing.T) {
	for name, way := range map[string]wire.Way{"ask": wire.Ask, "answer": wire.Answer} {
		t.Run(name, func(t *testing.T) {
			e := newEcho(t)
			p, through := wire.Start(t, e.url)
			conn := dial(t, through)
			struck := p.Strike(wire.Fault{Trip: 1, Way: way, Kind: wire.Silence})
			say(t, conn, "lost")
			await(t, struck)
			say(t, conn, "lost too")
			require.NoError(t, conn.Close())
			other := dial(t, through)
			talk(t, other, "other")
			if way == wire.Answer {
				require.Equal(t, "lost", await(t, e.heard))
			}
			require.Equal(t, "other", await(t, e.heard))
			requireQuiet(t, e.ended)
			p.Heal()
			await(t, e.ended)
			talk(t, other, "other again")
		})
	}
}

func TestProxy_BlackoutSilencesAllAndHoldsNewConnections(t *testing.T) {
	e := newEcho(t)
	p, through := wire.Start(t, e.url)
	conn, other := dial(t, through), dial(t, through)
	talk(t, other, "other")
	await(t, e.heard)
	struck := p.Strike(wire.Fault{Trip: 1, Kind: wire.Blackout})
	say(t, conn, "lost")
	await(t, struck)
	say(t, other, "lost too")
	late := dial(t, through)
	say(t, late, "late")
	requireQuiet(t, e.heard)
	p.Heal()
	hear(t, late, "late")
	require.Equal(t, "late", await(t, e.heard), "and nothing of the others")
	requireEnd(t, conn)
	requireEnd(t, other)
}

func TestProxy_HoldKeepsOneMessageBack(t *testing.T) {
	for name, way := range map[string]wire.Way{"ask": wire.Ask, "answer": wire.Answer} {
		t.Run(name, func(t *testing.T) {
			e := newEcho(t)
			p, through := wire.Start(t, e.url)
			conn, other := dial(t, through), dial(t, through)
			struck := p.Strike(wire.Fault{Trip: 1, Way: way, Kind: wire.Hold})
			say(t, conn, "held")
			await(t, struck)
			talk(t, other, "other")
			if way == wire.Ask {
				require.Equal(t, "other", await(t, e.heard), "the server has not heard the held message")
			}
			p.Heal()
			hear(t, conn, "held")
			talk(t, conn, "more")
		})
	}
}

func TestProxy_HealDisarms(t *testing.T) {
	p, through := wire.Start(t, newEcho(t).url)
	conn := dial(t, through)
	struck := p.Strike(wire.Fault{Trip: 1})
	p.Heal()
	talk(t, conn, "whole")
	requireQuiet(t, struck)
}

func TestProxy_TamperChangesWhatIsSaid(t *testing.T) {
	e := newEcho(t)
	p, through := wire.Start(t, e.url)
	p.Tamper(func(way wire.Way, piece []byte) []byte {
		if way == wire.Ask {
			return bytes.ToUpper(piece)
		}
		return append(piece, '!')
	})
	conn := dial(t, through)
	say(t, conn, "word")
	hear(t, conn, "WORD!")
	require.Equal(t, "WORD", await(t, e.heard))
}

func TestProxy_CancelRequestsAreNoTrips(t *testing.T) {
	e := newEcho(t)
	p, through := wire.Start(t, e.url)
	conn := dial(t, through)
	struck := p.Strike(wire.Fault{Trip: 1})
	cancel := string([]byte{0, 0, 0, 16, 4, 210, 22, 46, 0, 0, 0, 1, 0, 0, 0, 2})
	require.Zero(t, p.Trips(func() { talk(t, dial(t, through), cancel) }))
	require.Equal(t, cancel, await(t, e.heard))
	requireQuiet(t, struck)
	talk(t, dial(t, through), cancel)
	say(t, conn, "first")
	await(t, struck)
	requireEnd(t, conn)
}

// A trip takes at least twice the delay, and what follows it on its way takes no more.
func TestProxy_DelayHoldsForEachWay(t *testing.T) {
	const delay = 200 * time.Millisecond
	e := newEcho(t)
	p, through := wire.Start(t, e.url)
	p.Delay(delay)
	conn := dial(t, through)
	started := time.Now()
	say(t, conn, "first")
	require.Equal(t, "first", await(t, e.heard))
	require.GreaterOrEqual(t, time.Since(started), delay)
	hear(t, conn, "first")
	require.GreaterOrEqual(t, time.Since(started), 2*delay)
	say(t, conn, "last")
	hear(t, conn, "last")
	require.NoError(t, conn.Close())
	await(t, e.ended)
}

func TestProxy_ServerThatRefusesEndsTheConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	_, through := wire.Start(t, "postgres://"+address+"/db")
	requireEnd(t, dial(t, through))
}

func TestStatements(t *testing.T) {
	var piece []byte
	for _, kind := range "QPBDEBES" {
		piece = append(piece, byte(kind), 0, 0, 0, 6, 'E', 'Q')
	}
	require.Equal(t, 3, wire.Statements(piece))
	require.Zero(t, wire.Statements(nil))
}

func TestMessages(t *testing.T) {
	bind := []byte{'B', 0, 0, 0, 6, 1, 2}
	sync := []byte{'S', 0, 0, 0, 4}
	piece := bytes.Join([][]byte{bind, sync, bind}, nil)
	require.Equal(t, 3, wire.Count(piece))
	require.Zero(t, wire.Count(nil))
	for n, end := range []int{0, 7, 12, 19, 19} {
		require.Equal(t, end, wire.First(n)(piece), n)
	}
	require.Equal(t, 9, wire.First(2)(piece[:9]), "a piece that ends within a message")
	require.Equal(t, 2, wire.First(1)(piece[:2]))
	require.Equal(t, 2, wire.Count(piece[:9]))
	require.Equal(t, 9, wire.Half(piece))
}

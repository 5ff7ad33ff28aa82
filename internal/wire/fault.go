package wire

import "encoding/binary"

// Way is where a message goes.
type Way int

const (
	// Ask goes from the client to the server.
	Ask Way = iota
	// Answer goes from the server to the client.
	Answer
)

// Kind is what becomes of a message and its connection.
type Kind int

const (
	// Cut closes the connection on both sides.
	Cut Kind = iota
	// Silence lets nothing more through on the connection, in either direction, and neither side is told, even when the
	// other one closes: a partition without FIN, until Heal.
	Silence
	// Blackout is Silence for every connection, and new ones wait until Heal.
	Blackout
	// Hold keeps the message, and all that follows it on its way, until Heal.
	Hold
)

// Fault strikes one message.
type Fault struct {
	// Trip counts the round trips from now on; 1 is the next.
	Trip int
	Way  Way
	Kind Kind
	// Pass says how many bytes of the message still arrive. Nil means none. Hold does not ask it.
	Pass func(message []byte) int
}

type armed struct {
	Fault
	trip   int
	struck chan struct{}
}

// Half is a Pass that cuts a message in the middle.
func Half(message []byte) int { return len(message) / 2 }

// First returns a Pass that lets the first n protocol messages arrive, of the many that may travel together.
func First(n int) func([]byte) int {
	return func(piece []byte) int {
		end := 0
		for range n {
			end = next(piece, end)
		}
		return end
	}
}

// Count returns the number of whole protocol messages in a piece. Those that open a connection do not count: they have
// another form.
func Count(piece []byte) (n int) {
	for end := 0; end < len(piece); n++ {
		end = next(piece, end)
	}
	return n
}

// Statements returns the number of statements that a piece asks the server to run: its messages Query and Execute.
func Statements(piece []byte) (n int) {
	for end := 0; end < len(piece); end = next(piece, end) {
		if piece[end] == 'Q' || piece[end] == 'E' {
			n++
		}
	}
	return n
}

// isCancel tells whether the first message of a connection is a CancelRequest.
func isCancel(piece []byte) bool {
	const code = 1234<<16 | 5678
	return len(piece) == 16 && binary.BigEndian.Uint32(piece[4:]) == code
}

// next returns the end of the protocol message that starts at start: a type byte and a length that counts itself.
func next(piece []byte, start int) int {
	if start+5 > len(piece) {
		return len(piece)
	}
	return min(len(piece), start+1+int(binary.BigEndian.Uint32(piece[start+1:])))
}

package goshell

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Beyond these two bounds a body is hashed as it came. Both are part of the definition of a fingerprint, so they never
// change.
const (
	maxCanonicalBytes = 1 << 20
	maxCanonicalDepth = 512
)

// canonicalBody returns the RFC 8785 form of a body when that form says exactly what the body says, and the body itself
// otherwise: when it is not JSON, has a duplicate member, holds a number that the form would change, or is beyond the
// bounds above. The Content-Type plays no part.
//
// So equal JSON has one canonical body, and two requests that differ never share one: a raw body can cost a repeat its
// replay (422), but never gives one request the answer of another.
func canonicalBody(body []byte) []byte {
	if len(body) == 0 || len(body) > maxCanonicalBytes || !utf8.Valid(body) {
		return body
	}
	c := canonicaliser{
		text: body, out: make([]byte, 0, len(body)),
		// What a usual body of a few KiB needs, in one allocation each.
		objects: make([]jsonObject, 0, 16), open: make([]jsonMember, 0, 16), sorted: make([]jsonMember, 0, 64),
	}
	if !c.value() || c.peek() != 0 || c.pos != len(body) {
		return body
	}
	return c.inOrder()
}

// canonicaliser reads a JSON text in one pass and writes each value in its canonical form, still in the order of the
// text. It notes where objects and their members lie in out, and inOrder then copies every byte once to its place. Work
// and memory so grow with the size of the text, whatever its shape (names are sorted); jcs.Transform takes 94 MB and
// 0.4 s for 1 MiB of zeros. Tests hold both to the same results.
type canonicaliser struct {
	text    []byte // valid UTF-8
	pos     int    // what was read of it
	depth   int
	out     []byte
	objects []jsonObject // by their opening brace
	open    []jsonMember // of the objects around pos
	sorted  []jsonMember // of the objects whose members are out of order
	plain   []byte       // unescaped names, one after the other
}

// jsonObject is a span of out from its opening to its closing brace.
type jsonObject struct {
	start, end  int32
	next        int32 // the first object behind this one
	first, last int32 // its members in sorted; none when they are in order
}

// jsonMember is a span of out from its name to the end of its value.
type jsonMember struct {
	name       []byte // unescaped
	start, end int32
	objects    int32 // the first object in its value
}

// peek returns the next byte that is not white space, or 0.
func (c *canonicaliser) peek() byte {
	for ; c.pos < len(c.text); c.pos++ {
		switch b := c.text[c.pos]; b {
		case ' ', '\t', '\n', '\r':
		default:
			return b
		}
	}
	return 0
}

// take reads the byte b when it comes next.
func (c *canonicaliser) take(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.pos++
	return true
}

// value reads a value. It reports whether the text can be canonical so far, as all readers below do.
func (c *canonicaliser) value() bool {
	switch c.peek() {
	case '{':
		return c.object()
	case '[':
		return c.array()
	case '"':
		names := len(c.plain)
		text, ok := c.string()
		c.out = appendString(c.out, text)
		c.plain = c.plain[:names]
		return ok
	case 't':
		return c.literal("true")
	case 'f':
		return c.literal("false")
	case 'n':
		return c.literal("null")
	}
	return c.number()
}

func (c *canonicaliser) literal(name string) bool {
	ok := bytes.HasPrefix(c.text[c.pos:], []byte(name))
	c.pos += len(name)
	c.out = append(c.out, name...)
	return ok
}

func (c *canonicaliser) number() bool {
	length := numberLength(c.text[c.pos:])
	literal := c.text[c.pos : c.pos+length]
	c.pos += length
	var ok bool
	c.out, ok = appendNumber(c.out, literal)
	return ok
}

func (c *canonicaliser) array() bool {
	c.pos++
	if c.depth++; c.depth > maxCanonicalDepth {
		return false
	}
	c.out = append(c.out, '[')
	for first := true; !c.take(']'); first = false {
		if !first {
			if !c.take(',') {
				return false
			}
			c.out = append(c.out, ',')
		}
		if !c.value() {
			return false
		}
	}
	c.out = append(c.out, ']')
	c.depth--
	return true
}

func (c *canonicaliser) object() bool {
	c.pos++
	if c.depth++; c.depth > maxCanonicalDepth {
		return false
	}
	self, firstMember := len(c.objects), len(c.open)
	c.objects = append(c.objects, jsonObject{start: int32(len(c.out))})
	c.out = append(c.out, '{')
	for first := true; !c.take('}'); first = false {
		if !first {
			if !c.take(',') {
				return false
			}
			c.out = append(c.out, ',')
		}
		if !c.member() {
			return false
		}
	}
	c.out = append(c.out, '}')
	c.depth--

	o := &c.objects[self]
	o.end, o.next = int32(len(c.out)), int32(len(c.objects))
	members := c.open[firstMember:]
	c.open = c.open[:firstMember]
	if !slices.IsSortedFunc(members, byName) {
		slices.SortFunc(members, byName)
		o.first = int32(len(c.sorted))
		c.sorted = append(c.sorted, members...)
		o.last = int32(len(c.sorted))
	} else if self+1 == len(c.objects) {
		c.objects = c.objects[:self] // nothing in it is out of order
	}
	for i := 1; i < len(members); i++ {
		if bytes.Equal(members[i-1].name, members[i].name) {
			return false
		}
	}
	return true
}

func (c *canonicaliser) member() bool {
	if c.peek() != '"' {
		return false
	}
	name, ok := c.string()
	if !ok || !c.take(':') {
		return false
	}
	m := jsonMember{name: name, start: int32(len(c.out)), objects: int32(len(c.objects))}
	c.out = append(appendString(c.out, name), ':')
	if !c.value() {
		return false
	}
	m.end = int32(len(c.out))
	c.open = append(c.open, m)
	return true
}

// inOrder returns out with the members of each object sorted by name.
func (c *canonicaliser) inOrder() []byte {
	if len(c.sorted) == 0 {
		return c.out
	}
	return c.appendInOrder(make([]byte, 0, len(c.out)), 0, int32(len(c.out)), 0)
}

// appendInOrder appends out[start:end]; next is the first object in it.
func (c *canonicaliser) appendInOrder(to []byte, start, end, next int32) []byte {
	for int(next) < len(c.objects) && c.objects[next].start < end {
		o := c.objects[next]
		if o.first == o.last {
			next++ // in order itself; the objects in it may not be
			continue
		}
		to = append(to, c.out[start:o.start]...)
		separator := byte('{')
		for _, m := range c.sorted[o.first:o.last] {
			to = append(to, separator)
			to = c.appendInOrder(to, m.start, m.end, m.objects)
			separator = ','
		}
		to = append(to, '}')
		start, next = o.end, o.next
	}
	return append(to, c.out[start:end]...)
}

// byName orders members by the UTF-16 code units of their names. That is the order of the UTF-8 bytes, but for the
// characters from U+E000 to U+FFFF (EE and EF lead them), which come behind all that take four bytes.
func byName(a, b jsonMember) int {
	shorter := min(len(a.name), len(b.name))
	for i := range shorter {
		if a.name[i] != b.name[i] {
			return int(codeUnitRank(a.name[i])) - int(codeUnitRank(b.name[i]))
		}
	}
	return len(a.name) - len(b.name)
}

func codeUnitRank(b byte) byte {
	if b == 0xEE || b == 0xEF {
		return b + 0x10
	}
	return b
}

// string reads a string and returns what it says, unescaped: as a part of text, or at the end of plain.
func (c *canonicaliser) string() (text []byte, ok bool) {
	start, escaped := c.pos+1, false
	for i := start; i < len(c.text); i++ {
		switch b := c.text[i]; {
		case b == '"':
			c.pos = i + 1
			if escaped {
				from := len(c.plain)
				c.plain, ok = appendUnescaped(slices.Grow(c.plain, i-start), c.text[start:i])
				return c.plain[from:], ok
			}
			return c.text[start:i], true
		case b == '\\':
			escaped = true
			i++
		case b < ' ':
			return nil, false
		}
	}
	return nil, false
}

// The two-character escapes, both ways.
var (
	escapeOf = [256]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
	escaped  = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
)

// appendUnescaped refuses half a surrogate pair: it is no character.
func appendUnescaped(plain, text []byte) (_ []byte, ok bool) {
	for len(text) > 0 {
		switch {
		case text[0] != '\\':
			plain = append(plain, text[0])
			text = text[1:]
		case text[1] == 'u':
			char, ok := codeUnit(text)
			if !ok {
				return plain, false
			}
			text = text[6:]
			if utf16.IsSurrogate(char) {
				low, ok := codeUnit(text)
				if char = utf16.DecodeRune(char, low); !ok || char == utf8.RuneError {
					return plain, false
				}
				text = text[6:]
			}
			plain = utf8.AppendRune(plain, char)
		case escaped[text[1]] != 0:
			plain = append(plain, escaped[text[1]])
			text = text[2:]
		default:
			return plain, false
		}
	}
	return plain, true
}

// codeUnit returns the UTF-16 code unit that a text starts with as \uXXXX.
func codeUnit(text []byte) (unit rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	value, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(value), err == nil
}

// appendString quotes a text and escapes no more than JSON demands.
func appendString(to, text []byte) []byte {
	const hex = "0123456789abcdef"
	to = append(to, '"')
	copied := 0
	for i, b := range text {
		if b >= ' ' && b != '"' && b != '\\' {
			continue
		}
		to = append(to, text[copied:i]...)
		copied = i + 1
		if escape := escapeOf[b]; escape != 0 {
			to = append(to, '\\', escape)
		} else {
			to = append(to, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		}
	}
	to = append(to, text[copied:]...)
	return append(to, '"')
}

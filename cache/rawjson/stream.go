package rawjson

import (
	"fmt"
	"io"
)

// defaultMax is the limit of apimachinery's streaming decoder.
const defaultMax = 16 << 20

// stream reads values of limited size from a reader through one buffer that
// grows to the largest of them.
type stream struct {
	r          io.Reader
	buf        []byte
	start, end int // unread part of buf
	max        int // bytes of one value
	offset     int64
	err        error // of r; what is in buf is still good
	// outline is of a value before, where those that come are mostly alike; nil: they are not.
	outline *outline
	worth   worth
}

func newStream(r io.Reader, max int) stream {
	if max <= 0 {
		max = defaultMax
	}
	return stream{r: r, max: max}
}

// fill reads more; it returns the reader's error once there is nothing more.
// The unread part may move within buf, its length only grows.
func (s *stream) fill() error {
	if s.err != nil {
		return s.err
	}
	s.makeRoom()
	for range 100 {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		s.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.err = io.ErrNoProgress
	return s.err
}

// makeRoom leaves space after the unread part.
func (s *stream) makeRoom() {
	const minimum, big = 4 << 10, 1 << 20
	switch {
	case s.start == s.end:
		s.start, s.end = 0, 0
		if len(s.buf) > big {
			s.buf = nil // one giant need not be paid for until the end
		}
	case s.start > len(s.buf)/2:
		s.end = copy(s.buf, s.buf[s.start:s.end])
		s.start = 0
	}
	if s.end == len(s.buf) {
		if s.start > 0 {
			s.end = copy(s.buf, s.buf[s.start:s.end])
			s.start = 0
		}
		if s.end > len(s.buf)/2 {
			grown := make([]byte, max(minimum, 2*len(s.buf)))
			copy(grown, s.buf[:s.end])
			s.buf = grown
		}
	}
	if len(s.buf) == 0 {
		s.buf = make([]byte, minimum)
	}
}

// space passes white space and returns the byte after it.
func (s *stream) space() (byte, error) {
	for {
		for s.start < s.end {
			c := s.buf[s.start]
			if !isSpace(c) {
				return c, nil
			}
			s.start++
			s.offset++
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// value returns the value that starts at the first unread byte. It is valid
// until the next call.
func (s *stream) value() ([]byte, error) {
	switch c := s.buf[s.start]; {
	case c == '{' || c == '[' || c == '"' || c == '-' || isDigit(c) || c == 't' || c == 'f' || c == 'n':
	default:
		return nil, s.unexpected()
	}
	if n := s.alike(); n > 0 {
		return s.take(n), nil
	}
	var b boundary
	for n := 0; ; {
		m, done := b.feed(s.buf[s.start+n : s.end])
		n += m
		if n > s.max {
			return nil, fmt.Errorf("%w of %d bytes", ErrTooLarge, s.max)
		}
		if !done {
			err := s.fill()
			if err == nil {
				continue
			}
			if err != io.EOF {
				return nil, err
			}
			if b.mode != inWord || cutOff(s.buf[s.start:s.end]) {
				return nil, io.ErrUnexpectedEOF
			}
		}
		if b.mode == inWord && !isWord(s.buf[s.start:s.start+n]) {
			return nil, s.unexpected()
		}
		v := s.take(n)
		s.compareWith(v)
		return v, nil
	}
}

// take returns the next n bytes and steps over them.
func (s *stream) take(n int) []byte {
	v := s.buf[s.start : s.start+n : s.start+n]
	s.start += n
	s.offset += int64(n)
	return v
}

// alike is how long the next value is if it is like one before; else 0, and nothing is read of it.
func (s *stream) alike() int {
	if s.outline == nil || len(s.outline.text) == 0 {
		return 0
	}
	for s.outline.begin(); ; {
		switch s.outline.feed(s.buf[s.start:s.end]) {
		case unlike:
			return 0
		case alike:
			if s.outline.at > s.max {
				return 0
			}
			s.worth.won()
			return s.outline.at
		}
		if s.end-s.start > s.max || s.fill() != nil {
			return 0 // as will be found once more
		}
	}
}

// compareWith has what comes compared with v, if that is an object.
func (s *stream) compareWith(v []byte) {
	if s.outline != nil && v[0] == '{' && len(v) <= maxInsides && s.worth.another() && skipValue(v, 0, 0) == len(v) {
		s.outline.take(v, extent{0, len(v)}) // any key is as good as any other
	}
}

// isWord reports whether b is a number, true, false or null. How large numbers
// are is for whoever reads them.
func isWord(b []byte) bool {
	end := 0
	if b[0] == '-' || isDigit(b[0]) {
		end, _ = numberEnd(b, 0)
	} else {
		end = skipValue(b, 0, 0)
	}
	return end == len(b)
}

// cutOff reports whether b is the beginning of a number or word.
func cutOff(b []byte) bool {
	end := skipValue(b, 0, 0)
	if end >= 0 {
		return false
	}
	why, at := failure(end)
	return why == badSyntax && at >= len(b)
}

func (s *stream) unexpected() error {
	return &SyntaxError{Offset: int(s.offset), Msg: fmt.Sprintf("invalid JSON stream: unexpected %q", s.buf[s.start])}
}

// pass steps over one byte.
func (s *stream) pass() {
	s.start++
	s.offset++
}

package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

// choppy returns its content in pieces of random size.
type choppy struct {
	b   []byte
	r   *rand.Rand
	end error
}

func (c *choppy) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, c.end
	}
	n := copy(p, c.b[:1+c.r.IntN(min(len(c.b), 1+c.r.IntN(200)))])
	c.b = c.b[n:]
	if len(c.b) == 0 && c.r.IntN(2) == 0 {
		return n, c.end
	}
	return n, nil
}

func (c *choppy) Close() error { return nil }

func chop(b []byte, seed uint64) *choppy {
	return &choppy{b: b, r: rand.New(rand.NewPCG(seed, 2)), end: io.EOF}
}

// readFrame reads one frame with reads of random size, as apimachinery's
// streaming decoder does with a buffer that is too small.
func readFrame(f io.Reader, r *rand.Rand) ([]byte, error) {
	var frame []byte
	for {
		p := make([]byte, 1+r.IntN(300))
		n, err := f.Read(p)
		frame = append(frame, p[:n]...)
		if err != io.ErrShortBuffer {
			return frame, err
		}
	}
}

// checkFrames holds the frame reader against json.Decoder, for as long as that
// one finds valid values.
func checkFrames(t *testing.T, src []byte, seed uint64) {
	t.Helper()
	c := chop(src, seed)
	f := NewFrameReader(c, 0)
	dec := json.NewDecoder(bytes.NewReader(src))
	for {
		var want json.RawMessage
		wantErr := dec.Decode(&want)
		got, err := readFrame(f, c.r)
		if wantErr == io.EOF || wantErr == io.ErrUnexpectedEOF {
			if wantErr == io.EOF && err != io.EOF || wantErr != io.EOF && (err == nil || err == io.EOF) {
				t.Fatalf("%q: Read() = %q, %v, want %v", src, got, err, wantErr)
			}
			return
		}
		if wantErr != nil {
			// Validation is for whoever reads the frame; but it must see that.
			for err == nil {
				if !json.Valid(got) {
					return
				}
				got, err = readFrame(f, c.r)
			}
			if err == io.EOF {
				t.Fatalf("%q: Read() = EOF, want %v", src, wantErr)
			}
			return
		}
		if err != nil || !bytes.Equal(got, want) {
			at := int(dec.InputOffset())
			if err != nil && isWordByte(want[0]) && at < len(src) && isWordByte(src[at]) {
				return // json.Decoder takes 00 for two zeros
			}
			t.Fatalf("%q: Read() = %q, %v, want %q", src, got, err, want)
		}
	}
}

var hardStreams = []string{
	``, ` `, `{}`, `{}{}`, "{}\n{}\n", ` {"a":"}\"{"}  [1,[2]]"x\"" 12 null`, `{"a":[}]}`, `{`, `{"a`, `{"a\`, `"`, `}`, `]`, `{}}`, `{} x`, `1`, `tru`, `{}00`, `-`, `1e999`, `1e700A`, `1e700 {}`,
	`{"a":"` + strings.Repeat(`\\`, 100) + `"}{}`, `{"a":"` + strings.Repeat(`\"`, 99) + `"}{}`, strings.Repeat("[", 200) + strings.Repeat("]", 200),
	strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70) + "{}",
}

func TestFramesRandom(t *testing.T) {
	for i, s := range hardStreams {
		for seed := range uint64(20) {
			checkFrames(t, []byte(s), seed+uint64(i))
		}
	}
	for seed := range uint64(1000) {
		var b []byte
		for i := range seed % 5 {
			b = append(b, generate(seed*7+i)...)
		}
		if seed%3 == 0 {
			b = b[:len(b)*int(seed%10)/10]
		}
		checkFrames(t, b, seed)
	}
}

func TestFrameErrors(t *testing.T) {
	f := NewFrameReader(chop([]byte(`{"a":1}{"b`), 1), 0)
	p := make([]byte, 100)
	if n, err := f.Read(p); n != 7 || err != nil {
		t.Fatalf("Read() = %d, %v", n, err)
	}
	for range 2 {
		if _, err := f.Read(p); err != io.ErrUnexpectedEOF {
			t.Fatalf("Read() = %v, want unexpected EOF", err)
		}
	}
	big := `{"a":"` + strings.Repeat("x", 10000) + `"}`
	f = NewFrameReader(chop([]byte(`{}`+big+`{}`), 1), 9000)
	if n, err := f.Read(p); n != 2 || err != nil {
		t.Fatalf("Read() = %d, %v", n, err)
	}
	if _, err := f.Read(p); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("Read() = %v, want ErrTooLarge", err)
	}
	broken := errors.New("reset")
	c := chop([]byte(`{"a":1}{"b`), 1)
	c.end = broken
	f = NewFrameReader(c, 0)
	if _, err := f.Read(p); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(p); err != broken {
		t.Fatalf("Read() = %v, want the reader's error", err)
	}
}

func TestFrameAllocs(t *testing.T) {
	src := podStream(200)
	f := NewFrameReader(io.NopCloser(bytes.NewReader(src)), 0)
	p := make([]byte, 16<<10)
	read := func() {
		n, err := f.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		if typ, _, err := ParseWatchEvent(p[:n]); err != nil || typ != "ADDED" {
			t.Fatal(typ, err)
		}
	}
	read()
	if n := testing.AllocsPerRun(150, read); n != 0 {
		t.Errorf("a frame allocates %v times", n)
	}
}

func FuzzFrames(f *testing.F) {
	for i, s := range hardStreams {
		f.Add([]byte(s), uint64(i))
	}
	for seed := range uint64(20) {
		f.Add(append(generate(seed), generate(seed+1)...), seed)
	}
	f.Fuzz(func(t *testing.T, src []byte, seed uint64) {
		checkFrames(t, src, seed)
	})
}

func TestParseWatchEvent(t *testing.T) {
	for in, want := range map[string]struct{ typ, object, err string }{
		`{"type":"ADDED","object":{"a":"}"}}`:                     {"ADDED", `{"a":"}"}`, ""},
		` { "object" : {"a":1} , "x":[1], "type" : "BOOKMARK" } `: {"BOOKMARK", `{"a":1}`, ""},
		`{"type":"ADDED","object":{"a":1},"object":{"b":1}}`:      {"ADDED", `{"b":1}`, ""},
		`{"t\u0079pe":"\u0041DDED","object":{}}`:                  {"ADDED", `{}`, ""},
		`{"type":"NEW","object":{}}`:                              {"NEW", `{}`, ""},
		`{"object":{}}`:                                           {err: "missing"},
		`{"type":"ADDED"}`:                                        {err: "missing"},
		`{"type":5,"object":{}}`:                                  {err: "not a string"},
		`{"type":"ADDED","object":{}`:                             {err: "unexpected end"},
		`{"type":"ADDED","object":{"a":"`:                         {err: "unexpected end"},
		`{"type":"ADDED","object":{}}x`:                           {err: "unexpected 'x'"},
		`{"type":"ADDED",}`:                                       {err: "unexpected '}'"},
		`[]`:                                                      {err: "want a JSON object"},
		``:                                                        {err: "unexpected end"},
		`{"type"`:                                                 {err: "unexpected end"},
		`{"type":`:                                                {err: "unexpected end"},
	} {
		typ, object, err := ParseWatchEvent([]byte(in))
		if want.err != "" {
			if err == nil || !strings.Contains(err.Error(), want.err) {
				t.Errorf("ParseWatchEvent(%s) = %v, want %q", in, err, want.err)
			}
			continue
		}
		if err != nil || typ != want.typ || string(object) != want.object {
			t.Errorf("ParseWatchEvent(%s) = %s, %s, %v", in, typ, object, err)
		}
	}
}

func FuzzParseWatchEvent(f *testing.F) {
	f.Add([]byte(`{"type":"ADDED","object":{"a":"}"}}`))
	f.Add([]byte(` { "object" : {"a":1} , "x":[1], "type" : "BOOKMARK" } `))
	f.Add([]byte(`{"t\u0079pe":"\u0041DDED","object":{},"object":{"a":2}}`))
	f.Fuzz(func(t *testing.T, frame []byte) {
		typ, object, err := ParseWatchEvent(frame)
		m, ok := refDecode(frame)
		if !ok {
			if err == nil && json.Valid(object) && json.Valid(frame) == false && !bytes.Contains(frame, object) {
				t.Fatalf("ParseWatchEvent(%q) = %q", frame, object)
			}
			return
		}
		wantType, _ := m["type"].(string)
		want, has := m["object"]
		if wantType == "" || !has {
			if err == nil {
				t.Fatalf("ParseWatchEvent(%q) = %q, %q, want an error", frame, typ, object)
			}
			return
		}
		if err != nil {
			if bytes.Count(frame, []byte("type")) > 1 || bytes.Contains(frame, []byte(`\u`)) {
				return // an earlier type of the wrong kind is refused
			}
			t.Fatalf("ParseWatchEvent(%q) = %v", frame, err)
		}
		var got any
		if typ != wantType || kjsonUnmarshal(object, &got) != nil || !equalJSON(got, want) {
			t.Fatalf("ParseWatchEvent(%q) = %q, %q", frame, typ, object)
		}
	})
}

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// Value is JSON as it was written. It is read by walking through it: of 20,000 rows
// encoding/json takes longer than informerd does to find and write them. What is walked
// past is not checked beyond its quotes and brackets.
type Value string

var errJSON = errors.New("it is not JSON")

// Value asks, and returns the answer as a whole, which is JSON.
func (c *Client) Value(ctx context.Context, path string, query url.Values) (Value, error) {
	resp, err := c.Get(ctx, path, query)
	if err != nil {
		return "", err
	}
	return c.Read(ctx, resp)
}

// Read reads an answer to its end, and closes it.
func (c *Client) Read(ctx context.Context, resp *http.Response) (Value, error) {
	defer resp.Body.Close()
	if mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mediaType != "application/json" {
		return "", c.foreign(resp)
	}
	text, err := readText(resp.Body, resp.ContentLength)
	if err != nil {
		return "", c.Broken(ctx, err)
	}
	return Value(text), nil
}

// readText reads all of in, of size bytes or -1. It doubles its room when that is full:
// appending would do so by a quarter, and copy large answers ten times.
func readText(in io.Reader, size int64) (string, error) {
	var text strings.Builder
	text.Grow(int(min(max(size, 64<<10), 64<<20)))
	chunk := make([]byte, 64<<10)
	for {
		n, err := in.Read(chunk)
		if text.Len()+n > text.Cap() {
			text.Grow(max(n, text.Cap()))
		}
		text.Write(chunk[:n])
		if err == io.EOF {
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
	}
}

// Members calls each with the members of an object.
func (v Value) Members(each func(name string, value Value) error) error {
	return v.walk('{', '}', func(i int) (int, error) {
		end, err := v.skip(i)
		if err != nil || v[i] != '"' {
			return i, fmt.Errorf("%w at byte %d: a name should be there", errJSON, i)
		}
		name := v[i:end]
		if i = v.space(end); i >= len(v) || v[i] != ':' {
			return i, fmt.Errorf("%w at byte %d: a colon should be there", errJSON, i)
		}
		i = v.space(i + 1)
		if end, err = v.skip(i); err != nil {
			return i, err
		}
		return end, each(name.Text(), v[i:end])
	})
}

// Elements calls each with the elements of an array. null has none.
func (v Value) Elements(each func(Value) error) error {
	if v == "null" {
		return nil
	}
	return v.walk('[', ']', func(i int) (int, error) {
		end, err := v.skip(i)
		if err != nil {
			return i, err
		}
		return end, each(v[i:end])
	})
}

// walk calls next with where each part begins, for where it ends.
func (v Value) walk(first, last byte, next func(i int) (end int, err error)) error {
	i := v.space(0)
	if i >= len(v) || v[i] != first {
		return fmt.Errorf("%w at byte %d: %c should be there", errJSON, i, first)
	}
	if i = v.space(i + 1); i < len(v) && v[i] == last {
		return nil
	}
	for {
		end, err := next(i)
		if err != nil {
			return err
		}
		i = v.space(end)
		switch {
		case i < len(v) && v[i] == ',':
			i = v.space(i + 1)
		case i < len(v) && v[i] == last:
			return nil
		default:
			return fmt.Errorf("%w at byte %d: a comma or %c should be there", errJSON, i, last)
		}
	}
}

// Text is what a string says, and of other values how they are written.
func (v Value) Text() string {
	if len(v) < 2 || v[0] != '"' {
		return string(v)
	}
	if strings.IndexByte(string(v), '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	var text string
	if json.Unmarshal([]byte(v), &text) != nil {
		return string(v)
	}
	return text
}

func (v Value) space(i int) int {
	for i < len(v) && (v[i] == ' ' || v[i] == '\n' || v[i] == '\t' || v[i] == '\r') {
		i++
	}
	return i
}

// skip is where the value at i ends.
func (v Value) skip(i int) (int, error) {
	depth := 0
	for begin := i; i < len(v); {
		switch v[i] {
		case '"':
			end := v.quote(i)
			if end < 0 {
				return 0, fmt.Errorf("%w: the string at byte %d does not end", errJSON, i)
			}
			i = end
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return 0, fmt.Errorf("%w at byte %d: a value should be there", errJSON, begin)
			}
			i++
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return 0, fmt.Errorf("%w at byte %d: a value should be there", errJSON, begin)
			}
			i++
			continue
		default:
			for i < len(v) && strings.IndexByte(",:]} \n\t\r", v[i]) < 0 {
				i++
			}
		}
		if depth == 0 {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%w: it ends within a value", errJSON)
}

// quote is where the string that begins at i ends, -1 if it does not.
func (v Value) quote(i int) int {
	for from := i + 1; ; {
		n := strings.IndexByte(string(v[from:]), '"')
		if n < 0 {
			return -1
		}
		end := from + n
		slashes := 0
		for end-1-slashes > i && v[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end + 1
		}
		from = end + 1
	}
}

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// firstWindow is how much of a long answer is held at first; it grows for a value that does
// not fit.
const firstWindow = 128 << 10

// List reads an answer that may be long while it comes in, and closes it: member is called
// with each of its members but the array items, item with each element of that. A Value is valid until
// they return. No more is held than one of them needs.
func (c *Client) List(ctx context.Context, resp *http.Response, member func(name string, value Value) error, item func(Value) error) error {
	defer resp.Body.Close()
	if mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mediaType != "application/json" {
		return c.foreign(resp)
	}
	w := &window{in: resp.Body, answer: answer{text: make([]byte, 0, firstWindow), begin: -1}}
	err := w.members(member, item)
	if err == nil {
		// What follows is no part of the answer, but for how the connection ends.
		if _, err = io.CopyN(io.Discard, w.in, firstWindow); err == io.EOF {
			err = nil
		}
	}
	var called *callError
	switch {
	case errors.As(err, &called):
		return called.error
	case err != nil:
		return c.Broken(ctx, err)
	}
	return nil
}

// callError is an error of who was called, which says nothing of the answer.
type callError struct{ error }

func ofCall(err error) error {
	if err == nil {
		return nil
	}
	return &callError{err}
}

// window is the part of an answer that is being read.
type window struct {
	answer
	in   io.Reader
	at   int   // what comes before it in the text has been read
	over error // of in, after what it has read; nil: there may be more
}

// fill brings in at least as much again as there is to be read, and puts that at the
// beginning: a value that did not fit is looked through again, but not for each piece that
// comes in.
func (w *window) fill() error {
	if w.over != nil {
		return w.cut()
	}
	kept := copy(w.text, w.text[w.at:])
	w.text, w.at, w.begin = w.text[:kept], 0, -1
	if 2*kept > cap(w.text) {
		w.text = append(make([]byte, 0, 2*cap(w.text)), w.text...)
	}
	for len(w.text) < max(2*kept, 1) && w.over == nil {
		n, err := w.in.Read(w.text[len(w.text):cap(w.text)])
		w.text, w.over = w.text[:len(w.text)+n], err
	}
	if len(w.text) == kept {
		return w.cut()
	}
	return nil
}

func (w *window) cut() error {
	if w.over == io.EOF {
		return errCut
	}
	return w.over
}

// next is the next byte that is no space, which is not passed.
func (w *window) next() (byte, error) {
	for {
		if w.at = w.space(w.at); w.at < len(w.text) {
			return w.text[w.at], nil
		}
		if err := w.fill(); err != nil {
			return 0, err
		}
	}
}

// pass passes the byte that has to come next, one of two.
func (w *window) pass(one, other byte) (byte, error) {
	c, err := w.next()
	if err == nil && c != one && c != other {
		err = fmt.Errorf("%w: %c should be there, not %c", errJSON, one, c)
	}
	w.at++
	return c, err
}

// value is the next one, as a whole.
func (w *window) value() (Value, error) {
	for {
		if _, err := w.next(); err != nil {
			return Value{}, err
		}
		end, err := w.skip(w.at)
		// What ends where the text does may be a number that goes on. The last brace comes
		// after every value.
		if err == nil && end < len(w.text) {
			v := Value{&w.answer, w.at}
			w.begin, w.end, w.at = w.at, end, end
			return v, nil
		}
		if err != nil && !errors.Is(err, errCut) {
			return Value{}, err
		}
		if err := w.fill(); err != nil {
			return Value{}, err
		}
	}
}

func (w *window) members(member func(name string, value Value) error, item func(Value) error) error {
	if _, err := w.pass('{', '{'); err != nil {
		return err
	}
	if c, err := w.next(); err != nil || c == '}' {
		return err
	}
	for {
		name, err := w.name()
		if err != nil {
			return err
		}
		if err := w.member(name, member, item); err != nil {
			return err
		}
		if c, err := w.pass(',', '}'); err != nil || c == '}' {
			return err
		}
	}
}

func (w *window) name() (string, error) {
	c, err := w.next()
	if err == nil && c != '"' {
		err = fmt.Errorf("%w: a name should be there, not %c", errJSON, c)
	}
	if err != nil {
		return "", err
	}
	v, err := w.value()
	if err != nil {
		return "", err
	}
	name := v.Text()
	_, err = w.pass(':', ':')
	return name, err
}

func (w *window) member(name string, member func(name string, value Value) error, item func(Value) error) error {
	c, err := w.next()
	if err != nil {
		return err
	}
	if name == "items" && c == '[' {
		return w.elements(item)
	}
	v, err := w.value()
	if err != nil {
		return err
	}
	return ofCall(member(name, v))
}

func (w *window) elements(item func(Value) error) error {
	w.at++
	if c, err := w.next(); err != nil || c == ']' {
		w.at++
		return err
	}
	for {
		v, err := w.value()
		if err != nil {
			return err
		}
		if err := item(v); err != nil {
			return ofCall(err)
		}
		if c, err := w.pass(',', ']'); err != nil || c == ']' {
			return err
		}
	}
}

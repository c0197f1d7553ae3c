package rawjson

import "io"

// frameReader hands out one JSON value per Read.
type frameReader struct {
	s      stream
	closer io.Closer
	rest   []byte // of the value being handed out
	err    error  // final
}

// NewFrameReader returns a reader whose every Read yields one complete JSON
// value of r, as runtime.Framer asks. Values may follow each other with or
// without white space; only numbers and words need some between them. If p is
// too small, Read fills it and returns io.ErrShortBuffer, and the next Read goes
// on. Read returns io.EOF after the last value and io.ErrUnexpectedEOF if r ends
// inside one. A value of more than maxFrame bytes (0 means 16 MiB) is
// ErrTooLarge. Errors are final.
//
// It finds where values end and does not validate them. It allocates only to
// grow its one buffer.
func NewFrameReader(r io.ReadCloser, maxFrame int) io.ReadCloser {
	return &frameReader{s: newStream(r, maxFrame), closer: r}
}

func (f *frameReader) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		if f.err == nil {
			f.rest, f.err = f.next()
		}
		if f.err != nil {
			return 0, f.err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	if len(f.rest) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

func (f *frameReader) next() ([]byte, error) {
	if _, err := f.s.space(); err != nil {
		return nil, err
	}
	return f.s.value()
}

func (f *frameReader) Close() error { return f.closer.Close() }

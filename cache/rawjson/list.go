package rawjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// ListMeta is what a list says about itself.
type ListMeta struct {
	APIVersion, Kind, ResourceVersion, Continue string
	RemainingItemCount                          *int64
}

// StatusError says that the body of a list is a metav1.Status.
type StatusError struct {
	Raw []byte // the Status as JSON
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("read list: the server answered with a Status: %.512s", e.Raw)
}

// ErrNotList says that a body is complete JSON but has no items.
var ErrNotList = errors.New("read list: the body has no items, so it is not a list")

// ListReader walks the body of a List item by item and holds one item at a time.
type ListReader struct {
	s       stream
	meta    ListMeta
	name    string // of the member that has the items
	members []byte // raw members other than items, to show a Status whole
	columns []byte
	where   listPlace
	listed  bool // items was there
	err     error
}

type listPlace uint8

const (
	beforeList  listPlace = iota // the opening brace is due
	beforeFirst                  // a key or the closing brace is due
	afterMember                  // a comma or the closing brace is due
	firstItem                    // an item or the closing bracket is due
	afterItem                    // a comma or the closing bracket is due
)

// maxMembers bounds what a list may hold beside its items.
const maxMembers = 1 << 20

// NewListReader returns a reader of the list in r. An item of more than maxItem
// bytes (0 means 16 MiB) is ErrTooLarge.
func NewListReader(r io.Reader, maxItem int) *ListReader {
	return newListReader(r, maxItem, "items")
}

// NewTableReader returns a reader of the rows of the metav1.Table in r.
func NewTableReader(r io.Reader, maxRow int) *ListReader {
	return newListReader(r, maxRow, "rows")
}

func newListReader(r io.Reader, max int, name string) *ListReader {
	s := newStream(r, max)
	s.outline = new(outline)
	return &ListReader{s: s, name: name}
}

// Next returns the raw JSON of the next item, valid until the next call and not
// yet validated. It returns io.EOF only after a complete list: a body that ends
// early is io.ErrUnexpectedEOF, a Status is a *StatusError. Errors are final.
func (l *ListReader) Next() ([]byte, error) {
	if l.err != nil {
		return nil, l.err
	}
	item, err := l.next()
	if err != nil {
		l.err = err
		return nil, err
	}
	return item, nil
}

// Meta returns what the list says about itself. It is complete once Next has
// returned io.EOF: items may come first.
func (l *ListReader) Meta() ListMeta { return l.meta }

// Columns returns the columnDefinitions of a table as JSON, nil before they came and
// where there are none. An API server writes them before the rows.
func (l *ListReader) Columns() []byte { return l.columns }

func (l *ListReader) next() ([]byte, error) {
	for {
		c, err := l.due()
		if err != nil {
			return nil, err
		}
		switch l.where {
		case beforeList:
			if c != '{' {
				return nil, l.s.unexpected()
			}
			l.s.pass()
			l.where = beforeFirst
		case beforeFirst, afterMember:
			if c == '}' {
				l.s.pass()
				return nil, l.finish()
			}
			if err := l.comma(c, l.where == afterMember); err != nil {
				return nil, err
			}
			if err := l.member(); err != nil {
				return nil, err
			}
		case firstItem, afterItem:
			if c == ']' {
				l.s.pass()
				l.where = afterMember
				continue
			}
			if err := l.comma(c, l.where == afterItem); err != nil {
				return nil, err
			}
			l.where = afterItem
			return l.inside(l.s.value())
		}
	}
}

// due passes white space and returns the byte after it, which must come.
func (l *ListReader) due() (byte, error) {
	c, err := l.s.space()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return c, err
}

// comma passes the comma, where one is wanted, and what white space follows.
func (l *ListReader) comma(c byte, wanted bool) error {
	if !wanted {
		return nil
	}
	if c != ',' {
		return l.s.unexpected()
	}
	l.s.pass()
	_, err := l.due()
	return err
}

// inside is for values that something must follow.
func (l *ListReader) inside(v []byte, err error) ([]byte, error) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return v, err
}

// member reads one key, and its value unless that is the items.
func (l *ListReader) member() error {
	c, err := l.due()
	if err != nil {
		return err
	}
	if c != '"' {
		return l.s.unexpected()
	}
	raw, err := l.valid()
	if err != nil {
		return err
	}
	key := string(appendText(nil, raw[1:len(raw)-1]))
	if c, err = l.due(); err != nil {
		return err
	}
	if c != ':' {
		return l.s.unexpected()
	}
	l.s.pass()
	if c, err = l.due(); err != nil {
		return err
	}
	if key == l.name {
		return l.items(c)
	}
	if raw, err = l.valid(); err != nil {
		return err
	}
	l.where = afterMember
	return l.note(key, raw)
}

// items steps into the array of items.
func (l *ListReader) items(c byte) error {
	if l.listed {
		return fmt.Errorf("read list: %s occurs twice", l.name)
	}
	l.listed = true
	if c == '[' {
		l.s.pass()
		l.where = firstItem
		return nil
	}
	raw, err := l.valid()
	if err != nil {
		return err
	}
	if string(raw) != "null" {
		return fmt.Errorf("read list: %s is %.40s, not an array", l.name, raw)
	}
	l.where = afterMember
	return nil
}

// valid reads a value and validates it.
func (l *ListReader) valid() ([]byte, error) {
	raw, err := l.inside(l.s.value())
	if err != nil {
		return nil, err
	}
	end := skipValue(raw, 0, 1)
	if end >= 0 && end < len(raw) {
		end = fail(badSyntax, end)
	}
	if end < 0 {
		return nil, fmt.Errorf("read list: %w", scanError(raw, end))
	}
	return raw, nil
}

// note keeps what a member says. The last of equal keys counts.
func (l *ListReader) note(key string, raw []byte) error {
	if len(l.members)+len(key)+len(raw) > maxMembers {
		return fmt.Errorf("read list: %w: more than %d bytes beside the items", ErrTooLarge, maxMembers)
	}
	if len(l.members) > 0 {
		l.members = append(l.members, ',')
	}
	l.members = appendQuoted(l.members, key)
	l.members = append(append(l.members, ':'), raw...)
	switch key {
	case "apiVersion":
		l.meta.APIVersion = stringOrEmpty(raw)
	case "kind":
		l.meta.Kind = stringOrEmpty(raw)
	case "columnDefinitions":
		l.columns = slices.Clone(raw)
	case "metadata":
		return l.noteMetadata(raw)
	}
	return nil
}

func stringOrEmpty(raw []byte) string {
	if raw[0] != '"' {
		return ""
	}
	return string(appendText(nil, raw[1:len(raw)-1]))
}

var listMetaPaths = func() *Extractor {
	e, err := CompileExtractor([]Path{mustPath("resourceVersion"), mustPath("continue"), mustPath("remainingItemCount")})
	if err != nil {
		panic(err)
	}
	return e
}()

func (l *ListReader) noteMetadata(raw []byte) error {
	l.meta.ResourceVersion, l.meta.Continue, l.meta.RemainingItemCount = "", "", nil
	if raw[0] != '{' {
		return nil
	}
	return listMetaPaths.Each(raw, func(v Value) bool {
		switch {
		case v.Path == 0 && v.Kind == String:
			l.meta.ResourceVersion = string(v.Text)
		case v.Path == 1 && v.Kind == String:
			l.meta.Continue = string(v.Text)
		case v.Path == 2 && v.Kind == Number && !bytes.ContainsAny(v.Text, ".eE"):
			if n, err := strconv.ParseInt(string(v.Text), 10, 64); err == nil {
				l.meta.RemainingItemCount = &n
			}
		}
		return true
	})
}

// finish checks that the body ends here and was a list.
func (l *ListReader) finish() error {
	if _, err := l.s.space(); err == nil {
		return l.s.unexpected()
	} else if err != io.EOF {
		return err
	}
	switch {
	case l.listed:
		return io.EOF
	case l.meta.Kind == "Status":
		return &StatusError{Raw: append(append([]byte{'{'}, l.members...), '}')}
	default:
		return ErrNotList
	}
}

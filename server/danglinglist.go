package server

import (
	"fmt"
	"strconv"

	"github.com/informerd/informerd/cache/graph"
	"github.com/informerd/informerd/server/reply"
)

// danglingBytes is about how long an item is.
const danglingBytes = 500

// danglingParts is an answer, which is written without encoding/json: that takes longer for as
// many references as there are pods than it takes to find them.
type danglingParts struct {
	head, foot []byte
	items      []graph.Dangling
}

func newDanglingParts(found *graph.DanglingAnswer, missing []unansweredItem) (*danglingParts, error) {
	metadata, err := reply.JSON(listMeta{Truncated: found.Truncated}, false)
	if err != nil {
		return nil, err
	}
	unanswered, err := reply.JSON(append(unansweredItems(found.Unanswered), missing...), false)
	if err != nil {
		return nil, err
	}
	return &danglingParts{
		head:  fmt.Appendf(nil, `{"kind":"DanglingList","apiVersion":%q,"metadata":%s,"items":[`, apiVersion, metadata),
		foot:  fmt.Appendf(nil, `],"unanswered":%s}`, unanswered),
		items: found.Items,
	}, nil
}

// appendItem appends item i, and what is before it.
func (l *danglingParts) appendItem(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return appendDanglingItem(dst, &l.items[i])
}

// json is the whole answer.
func (l *danglingParts) json() []byte {
	dst := append(make([]byte, 0, len(l.head)+danglingBytes*(len(l.items)+1)+len(l.foot)), l.head...)
	for i := range l.items {
		dst = l.appendItem(dst, i)
	}
	return append(dst, l.foot...)
}

// write writes the answer while it is made.
func (l *danglingParts) write(out *reply.Writer) error {
	if err := out.Append(func(dst []byte) ([]byte, error) { return append(dst, l.head...), nil }); err != nil {
		return err
	}
	for i := range l.items {
		if err := out.Append(func(dst []byte) ([]byte, error) { return l.appendItem(dst, i), nil }); err != nil {
			return err
		}
	}
	return out.Append(func(dst []byte) ([]byte, error) { return append(append(dst, l.foot...), '\n'), nil })
}

// appendDanglingItem writes a reference to what is not there, or without a To a selector that
// selects nothing.
func appendDanglingItem(dst []byte, d *graph.Dangling) []byte {
	dst = appendNode(append(dst, `{"from":`...), &d.From)
	if d.To != nil {
		dst = appendNode(append(dst, `,"to":`...), d.To)
	}
	dst = reply.AppendText(append(dst, `,"edge":`...), d.Edge)
	dst = reply.AppendText(append(dst, `,"why":`...), d.Why)
	dst = appendNamed(dst, `,"selector":`, d.Selector)
	dst = appendNamed(dst, `,"namespaceSelector":`, d.NamespaceSelector)
	return append(dst, '}')
}

// appendNode writes what nodeOf is as JSON.
func appendNode(dst []byte, n *graph.Node) []byte {
	dst = appendQuotedID(append(dst, `{"id":`...), n)
	dst = reply.AppendText(append(dst, `,"resource":`...), n.Resource)
	dst = appendNamed(dst, `,"kind":`, n.Kind)
	dst = appendNamed(dst, `,"namespace":`, n.Key.Namespace)
	dst = reply.AppendText(append(dst, `,"name":`...), n.Key.Name)
	dst = appendNamed(dst, `,"uid":`, n.UID)
	dst = appendNamed(dst, `,"state":`, string(n.State))
	dst = strconv.AppendInt(append(dst, `,"depth":`...), int64(n.Depth), 10)
	for _, flag := range []struct {
		is   bool
		text string
	}{{n.Missing, `,"missing":true`}, {n.Unknown, `,"unknown":true`}, {n.Hub, `,"hub":true`}} {
		if flag.is {
			dst = append(dst, flag.text...)
		}
	}
	return append(dst, '}')
}

// appendQuotedID writes the id of a node in its place, where none of it has to be escaped.
func appendQuotedID(dst []byte, n *graph.Node) []byte {
	start := len(dst)
	dst = appendNodeID(append(dst, '"'), n)
	for _, c := range dst[start+1:] {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return reply.AppendText(dst[:start], string(dst[start+1:]))
		}
	}
	return append(dst, '"')
}

// appendNamed writes a member that is left out if it is empty.
func appendNamed(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	return reply.AppendText(append(dst, name...), text)
}

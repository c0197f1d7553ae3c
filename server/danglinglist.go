package server

import (
	"strconv"

	"github.com/informerd/informerd/cache/graph"
	"github.com/informerd/informerd/server/reply"
)

// danglingBytes is about how long an item is.
const danglingBytes = 500

// danglingJSON is the answer as JSON. It is written without encoding/json, which takes longer
// for as many references as there are pods than it takes to find them.
func danglingJSON(found *graph.DanglingAnswer, missing []unansweredItem) ([]byte, error) {
	metadata, err := reply.JSON(listMeta{Truncated: found.Truncated}, false)
	if err != nil {
		return nil, err
	}
	unanswered, err := reply.JSON(append(unansweredItems(found.Unanswered), missing...), false)
	if err != nil {
		return nil, err
	}
	dst := make([]byte, 0, danglingBytes*(len(found.Items)+1))
	dst = append(append(append(dst, `{"kind":"DanglingList","apiVersion":"`+apiVersion+`","metadata":`...), metadata...), `,"items":[`...)
	for i := range found.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendDanglingItem(dst, &found.Items[i])
	}
	return append(append(append(dst, `],"unanswered":`...), unanswered...), '}'), nil
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

package server

import (
	"strconv"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/health"
	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/cache/scalar"
	"github.com/informerd/informerd/server/reply"
)

// health() and healthReason() are values of an object like those of its fields, as far as
// sort, groupBy and facets go. They are of the moment of the question.

// judgedOrder gives keys of an order that are health() or healthReason() their values. What
// is worse is more, so that -health() begins with what is bad.
func judgedOrder(order cache.Order, now time.Time) cache.Order {
	for i := range order {
		switch order[i].Path.String() {
		case "health()":
			order[i].Value = func(json []byte) scalar.Value {
				return scalar.Value{Kind: rawjson.Number, Text: strconv.Itoa(int(health.Of(json, now).Status))}
			}
		case "healthReason()":
			order[i].Value = func(json []byte) scalar.Value {
				if reason := health.Of(json, now).Reason; reason != "" {
					return scalar.Value{Kind: rawjson.String, Text: reason}
				}
				return scalar.Value{}
			}
		}
	}
	return order
}

// judgedJSON writes objects with their health as fields of their own, for what counts them by
// it.
func judgedJSON(objects []*cache.Object, now time.Time) func(dst []byte, i int) ([]byte, error) {
	return func(dst []byte, i int) ([]byte, error) {
		start := len(dst)
		dst, err := objects[i].AppendJSON(dst)
		if err != nil || dst[len(dst)-1] != '}' {
			return dst, err
		}
		h := health.Of(dst[start:], now)
		dst = append(dst[:len(dst)-1], `,"health()":"`...) // before the bracket that ends the object
		dst = append(dst, h.Status.String()...)
		dst = append(dst, '"')
		if h.Reason != "" {
			dst = append(dst, `,"healthReason()":`...)
			dst = reply.AppendText(dst, h.Reason)
		}
		return append(dst, '}'), nil
	}
}

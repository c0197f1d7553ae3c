package faults

import "time"

// lie is a kind that is one rule of the proxy.
type lie struct {
	name, does string
	match, do  string
	lists      bool
	silent     bool
	most       time.Duration
}

// Half of the requests pass, so that a client that tries again gets on.
const (
	watches = `"verb":"watch","path":"^/api"`
	reads   = `"path":"^/api"`
	some    = `,"share":0.5`
)

var lies = []lie{
	{name: "429", does: "429 with Retry-After", match: reads + some, do: `"error":{"code":429,"reason":"TooManyRequests","message":"planted","retryAfter":1}`},
	{name: "500", does: "500", match: reads + some, do: `"error":{"code":500,"reason":"InternalError","message":"planted"}`},
	{name: "503", does: "503", match: reads + some, do: `"error":{"code":503,"reason":"ServiceUnavailable","message":"planted"}`},
	{name: "503-all", does: "503 to everything", match: reads, do: `"error":{"code":503,"reason":"ServiceUnavailable","message":"planted"}`},
	{name: "504-too-large", does: "504 with cause ResourceVersionTooLarge, as from a server that lags", match: reads + some,
		do: `"error":{"code":504,"reason":"Timeout","message":"Too large resource version","retryAfter":1,"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}`},
	{name: "401", does: "401", match: reads + some, do: `"error":{"code":401,"reason":"Unauthorized","message":"planted"}`},
	{name: "403", does: "403", match: reads + some, do: `"error":{"code":403,"reason":"Forbidden","message":"planted"}`, lists: true},
	{name: "event-500", does: "watches begin with an ERROR 500", match: watches + some, do: `"error":{"code":500,"reason":"InternalError","message":"planted","event":true}`},
	{name: "event-410", does: "watches begin with an ERROR 410", match: watches + `,"share":0.3`, do: `"error":{"code":410,"reason":"Expired","message":"planted","event":true}`, lists: true},
	{name: "cut-bytes", does: "answers end after 700 bytes", match: reads + some, do: `"cut":{"afterBytes":700}`},
	{name: "cut-events", does: "watches end after two events", match: watches, do: `"cut":{"afterEvents":2}`},
	{name: "cut-clean", does: "watches end after an event, in order", match: watches, do: `"cut":{"afterEvents":1,"clean":true}`},
	{name: "reset-events", does: "watches are reset after an event", match: watches, do: `"reset":{"afterEvents":1}`},
	{name: "reset", does: "requests are reset before an answer", match: reads + some, do: `"reset":{}`},
	{name: "withhold", does: "watches are silent for 30 s and then go on", match: watches, do: `"withhold":{"seconds":30}`, most: 60 * time.Second},
	{name: "withhold-all", does: "nothing is answered", match: reads, do: `"withhold":{"seconds":0}`, most: 100 * time.Second},
	{name: "delay-events", does: "each event comes 300 ms later", match: watches, do: `"delay":{"milliseconds":300}`, most: 40 * time.Second},
	{name: "delay-answers", does: "answers come two seconds later", match: reads, do: `"delay":{"milliseconds":2000,"before":"response"}`},
	{name: "garble-event", does: "an event of a watch cannot be decoded", match: watches + `,"times":3`, do: `"garble":{"event":1,"offset":1,"mask":1}`, lists: true},
	{name: "garble-list", does: "a list cannot be decoded", match: `"verb":"list","path":"^/api","times":3`, do: `"garble":{"offset":1,"mask":1}`, lists: true},
	{name: "truncate", does: "half of a list, and a regular end", match: `"verb":"list","path":"^/api"` + some, do: `"truncate":{}`},
	{name: "empty", does: "200 and nothing", match: reads + some, do: `"empty":{}`},
	{name: "bookmark-future", does: "versions of bookmarks are a million too high", match: watches, do: `"bookmark":{"add":1000000}`, lists: true, most: 70 * time.Second},
	{name: "bookmark-once", does: "watches give one bookmark and end", match: watches, do: `"bookmark":{"once":true}`},
}

func proxyKinds() []Kind {
	var all []Kind
	for _, l := range lies {
		rules := `{"seed":1,"rules":[{"name":"` + l.name + `","match":{` + l.match + `},"do":{` + l.do + `}}]}`
		most := l.most
		if most == 0 {
			most = 20 * time.Second
		}
		all = append(all, Kind{
			Name: "proxy-" + l.name, Does: l.does, Parts: []string{line}, Needs: "proxy", Least: 2 * time.Second, Most: most, Lists: l.lists, Silent: l.silent,
			Begin: orders(o("proxy", rules), o("proxy", `{"rules":[]}`)),
		})
	}
	return all
}

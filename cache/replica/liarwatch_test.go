package replica

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// watch streams what the watch cache learns, from a version on.
func (c *call) watch(initial bool) {
	from, _ := strconv.Atoi(c.at)
	seconds, _ := strconv.Atoi(c.r.URL.Query().Get("timeoutSeconds"))
	lasts := time.Duration(seconds) * time.Second
	var out strings.Builder
	c.l.mu.Lock()
	switch {
	case c.forbiddenLocked():
		c.l.mu.Unlock()
		return
	case initial && c.seen < c.l.version:
		c.w.WriteHeader(http.StatusGatewayTimeout)
		fmt.Fprint(c.w, tooLarge)
		c.l.mu.Unlock()
		return
	case initial:
		for _, o := range state(c.log, c.resource, c.seen) {
			if c.selects(o) {
				fmt.Fprintf(&out, "{\"type\":\"ADDED\",\"object\":%s}\n", c.encode(o))
			}
		}
		from = c.seen
		fmt.Fprintf(&out, "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%d\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n", from)
	case from < c.start:
		fmt.Fprintf(c.w, "{\"type\":\"ERROR\",\"object\":%s}\n", statusJSON(http.StatusGone, "Expired"))
		c.l.mu.Unlock()
		return
	}
	ends := c.ends
	c.l.mu.Unlock()
	end, last, next := time.NewTimer(lasts), time.NewTimer(lasts-bookmarkBefore), time.NewTicker(bookmarkEvery)
	defer end.Stop()
	defer last.Stop()
	defer next.Stop()
	due := ends
	var line []sent
	for {
		c.l.mu.Lock()
		slow := c.slow
		if !c.frozen && (c.quiet == "" || c.quiet != c.namespace) {
			c.eventsLocked(&out, &from)
			if due {
				c.bookmarksLocked(&out)
			}
		}
		wake := c.l.wake
		c.l.mu.Unlock()
		if out.Len() > 0 {
			line = append(line, sent{time.Now().Add(slow), out.String()})
			out.Reset()
		}
		var arrives <-chan time.Time
		for len(line) > 0 && arrives == nil {
			if takes := time.Until(line[0].due); takes > 0 {
				arrives = time.After(takes)
			} else if _, err := io.WriteString(c.w, line[0].text); err != nil {
				return
			} else {
				line = line[1:]
			}
		}
		c.w.(http.Flusher).Flush()
		if due && ends {
			return
		}
		due = false
		select {
		case <-wake:
		case <-arrives:
		case <-next.C:
			due = true
		case <-last.C:
			due = true
		case <-end.C:
			c.l.thaw(c.member, c.r.Context())
			for _, rest := range line {
				if !sleep(c.r.Context(), time.Until(rest.due)) {
					return
				}
				_, _ = io.WriteString(c.w, rest.text)
				c.w.(http.Flusher).Flush()
			}
			return
		case <-c.r.Context().Done():
			return
		}
	}
}

// eventsLocked writes what the watch cache has after from.
func (c *call) eventsLocked(out *strings.Builder, from *int) {
	for _, f := range c.log {
		if f.version <= *from {
			continue
		}
		*from = f.version
		if f.resource != c.resource || !c.selects(f.object) {
			continue
		}
		if c.swallowed > 0 {
			c.swallowed--
			continue
		}
		body := c.encode(f.object)
		if c.garbled > 0 {
			c.garbled--
			body = strings.Replace(body, c.garbling[0], c.garbling[1], 1)
		}
		fmt.Fprintf(out, "{\"type\":%q,\"object\":%s}\n", f.kind, body)
	}
	*from = max(*from, c.seen)
}

// knownLocked is how far the cache of the resource knows etcd to be.
func (c *call) knownLocked() int {
	if c.l.progress == 0 {
		return c.seen
	}
	known, tick := max(c.start, c.told[c.resource]), time.Now().Truncate(c.l.progress)
	for _, f := range c.log {
		if f.resource == c.resource || !f.at.After(tick) {
			known = max(known, f.version)
		}
	}
	return known
}

func (c *call) bookmarksLocked(out *strings.Builder) {
	if c.mute {
		return
	}
	versions := []int{c.knownLocked()}
	if c.forge != nil {
		versions = c.forge(c.seen)
	}
	for _, v := range versions {
		fmt.Fprintf(out, "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%d\"}}}\n", v)
	}
}

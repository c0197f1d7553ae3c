package health

import "time"

// condition is one of status.conditions.
type condition struct {
	kind, status, reason, message value
	changed, updated              value
	observed                      value // the generation that it is about
}

// parse returns how long v is.
func (c *condition) parse(v value) int {
	return members(v, func(key []byte, v value) {
		switch string(key) {
		case "type":
			c.kind = v
		case "status":
			c.status = v
		case "reason":
			c.reason = v
		case "message":
			c.message = v
		case "lastTransitionTime":
			c.changed = v
		case "observedGeneration":
			c.observed = v
		case "lastUpdateTime":
			c.updated = v
		}
	})
}

// conditions visits those of an object, until visit returns false. Each is valid until the
// next one.
func (o *object) conditions(visit func(c *condition) bool) {
	o.statusSaid().conditions.visit((*condition).parse, visit)
}

// condition is that of a type, the zero one if there is none.
func (o *object) condition(kind string) (found condition) {
	o.conditions(func(c *condition) bool {
		if is(c.kind, kind) {
			found = *c
			return false
		}
		return true
	})
	return found
}

func (c *condition) isTrue() bool  { return is(c.status, "True") }
func (c *condition) isFalse() bool { return is(c.status, "False") }
func (c *condition) isUnknown() bool {
	return len(c.status) > 0 && !c.isTrue() && !c.isFalse()
}

func (c *condition) since() time.Time { return when(c.changed) }

// health is what a condition says, with words for where it says nothing.
func (c *condition) health(s Status, reason, message string) Health {
	if r := text(c.reason); r != "" {
		reason = r
	}
	if m := text(c.message); m != "" {
		message = m
	}
	return Health{Status: s, Reason: reason, Message: message, Since: c.since()}
}

package health

import "fmt"

// container is the status of one container.
type container struct {
	name                value
	waiting, terminated value // of the two at most one
	last                value // how it ended before it was started again
	restarts            int64
	init                bool
}

// parse returns how long v is.
func (c *container) parse(v value) int {
	return passed(v, func(key []byte, v value) int {
		switch string(key) {
		case "name":
			c.name = v
		case "restartCount":
			c.restarts = count(v, 0)
		case "lastState":
			c.last = nil
			return members(v, func(key []byte, v value) {
				if string(key) == "terminated" {
					c.last = v
				}
			})
		case "state":
			return members(v, func(key []byte, v value) {
				switch string(key) {
				case "waiting":
					c.waiting = v
				case "terminated":
					c.terminated = v
				}
			})
		}
		return 0
	})
}

// role is what a container is called in a sentence.
func (c *container) role() string {
	if c.init {
		return "init container " + text(c.name)
	}
	return "container " + text(c.name)
}

// starting are the reasons to wait of a container that nothing is known to be wrong with.
func starting(reason value) bool {
	return len(reason) == 0 || is(reason, "") || is(reason, "ContainerCreating") || is(reason, "PodInitializing")
}

// containerTrouble is what is wrong with a container that does not run.
func containerTrouble(c *container) (Health, bool) {
	if len(c.waiting) > 0 {
		reason := c.waiting.Get("reason")
		if starting(reason) {
			return Health{}, false
		}
		return refused(c, text(reason)), true
	}
	return failedExit(c)
}

// failedExit is how a container ended, if it has failed.
func failedExit(c *container) (Health, bool) {
	if len(c.terminated) == 0 || !failed(c.terminated) {
		return Health{}, false
	}
	return exit(c, c.terminated), true
}

// refused tells why a container is not started: its image, its configuration, or that it
// has failed before.
func refused(c *container, reason string) Health {
	h := Health{Status: Bad, Reason: reason}
	message := text(c.waiting.Get("message"))
	if message == "" {
		message = "it waits"
	}
	h.Message = c.role() + ": " + message
	if len(c.last) == 0 || !failed(c.last) {
		return h
	}
	last := exit(c, c.last)
	h.Since, h.Message = last.Since, last.Message
	if last.Reason == "OOMKilled" {
		h.Reason = last.Reason // CrashLoopBackOff says less
	}
	if c.restarts > 0 {
		h.Message = h.Message + "; " + several(c.restarts, "restart")
	}
	return h
}

// failed reports whether a container ended with a failure.
func failed(terminated value) bool {
	if code, ok := number(terminated.Get("exitCode")); ok {
		return code != 0
	}
	return !is(terminated.Get("reason"), "Completed")
}

// exit tells how a container ended.
func exit(c *container, terminated value) Health {
	h := Health{Status: Bad, Reason: cmpText(terminated.Get("reason"), "Error"), Since: when(terminated.Get("finishedAt"))}
	code := count(terminated.Get("exitCode"), 0)
	if h.Reason == "Completed" {
		h.Reason = "Error"
	}
	switch {
	case h.Reason == "OOMKilled":
		h.Message = fmt.Sprintf("%s was killed for its use of memory (exit code %d)", c.role(), code)
	case h.Reason == "Error":
		h.Message = fmt.Sprintf("%s ended with exit code %d", c.role(), code)
	default:
		h.Message = fmt.Sprintf("%s ended with exit code %d: %s", c.role(), code, h.Reason)
	}
	if m := text(terminated.Get("message")); m != "" {
		h.Message += ": " + m
	}
	return h
}

// containerWaiting is what a container waits for.
func containerWaiting(c *container) (Health, bool) {
	if len(c.waiting) == 0 {
		return Health{}, false
	}
	reason := cmpText(c.waiting.Get("reason"), "ContainerCreating")
	return Health{Status: Progressing, Reason: reason, Message: c.role() + ": " + cmpText(c.waiting.Get("message"), "it is being started")}, true
}

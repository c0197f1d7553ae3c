package main

import (
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// console is where logs go. On a terminal it keeps a status line below them
// that is replaced in place.
type console struct {
	// terminal is whether anyone sees a status line.
	terminal bool
	width    func() int

	mu   sync.Mutex // guards w and line
	w    io.Writer
	line string
}

// newConsole writes to w, which is a terminal if it is a file that says so.
func newConsole(w io.Writer) *console {
	c := &console{w: w, width: func() int { return 80 }}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		c.terminal = true
		c.width = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil || width <= 0 {
				return 80
			}
			return width
		}
	}
	return c
}

// clearLine goes to the start of the line and empties it.
const clearLine = "\r\x1b[K"

// Write writes whole lines above the status line.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line == "" {
		return c.w.Write(p)
	}
	if _, err := io.WriteString(c.w, clearLine); err != nil {
		return 0, err
	}
	n, err := c.w.Write(p)
	if err == nil {
		_, err = io.WriteString(c.w, c.line)
	}
	return n, err
}

// status replaces the status line; "" removes it. Elsewhere than on a terminal
// it does nothing.
func (c *console) status(line string) {
	if !c.terminal {
		return
	}
	if runes := []rune(line); len(runes) >= c.width() {
		line = string(runes[:c.width()-1])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if line != c.line {
		c.line = line
		_, _ = io.WriteString(c.w, clearLine+line)
	}
}

// finish replaces the status line by a last one that stays.
func (c *console) finish(line string) {
	c.status("")
	if c.terminal {
		_, _ = io.WriteString(c, line+"\n")
	}
}

package terminal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// session is one run of a command: whom it asks and where it writes to.
type session struct {
	*client.Client
	ctx    context.Context
	out    *bufio.Writer
	err    io.Writer
	screen bool // out is a terminal
	colour bool
	warned map[string]bool // what has been said need not be said again
}

// open connects. What the session writes is seen when close is called, or flush.
func (c *connection) open(cmd *cobra.Command) (*session, error) {
	s := &session{
		ctx: cmd.Context(), out: bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10), err: cmd.ErrOrStderr(),
		screen: isTerminal(cmd.OutOrStdout()), warned: map[string]bool{},
	}
	s.colour = s.screen && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" // https://no-color.org
	var err error
	s.Client, err = c.connect(s.ctx, s.warn)
	return s, err
}

// run opens a session for ask, and closes it.
func (c *connection) run(cmd *cobra.Command, ask func(*session) error) error {
	s, err := c.open(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	err = ask(s)
	if flushed := s.out.Flush(); err == nil {
		err = flushed
	}
	return err
}

// warn says on the error output what an answer is worth.
func (s *session) warn(text string) {
	if !s.warned[text] {
		s.warned[text] = true
		fmt.Fprintln(s.err, "warning: "+oneLine(text))
	}
}

// note says what is no warning, below what has been printed.
func (s *session) note(format string, args ...any) {
	_ = s.out.Flush() // an error of it comes again
	fmt.Fprintf(s.err, format+"\n", args...)
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// shown is a text as it goes to out: to files and programs as it is, to a terminal without
// what would be an order to it.
func (s *session) shown(text []byte) []byte {
	if s.screen {
		return []byte(Printable(string(text)))
	}
	return text
}

// writeJSON prints an answer for people and programs.
func (s *session) writeJSON(raw []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := s.out.Write(s.shown(b.Bytes()))
	return err
}

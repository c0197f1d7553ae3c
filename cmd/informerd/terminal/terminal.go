// Package terminal holds the commands that ask a running informerd: get, count, search and
// the others. They are clients of its HTTP API like any other, and never ask a cluster
// themselves, but to find informerd in it. What they share is here: which server, which
// objects, how answers are printed and what exit codes mean.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// group is the headline of the commands in the help of all.
const group = "questions"

// Commands adds the commands to root.
func Commands(root *cobra.Command) {
	root.AddGroup(&cobra.Group{ID: group, Title: "Questions to a running informerd:"})
	for _, cmd := range []*cobra.Command{
		newGetCommand(), newCountCommand(), newSearchCommand(), newTreeCommand(), newUsedByCommand(),
		newDanglingCommand(), newHealthCommand(), newTopCommand(), newWatchCommand(), newWaitCommand(), newDiffCommand(), newExplainCommand(),
		newHandlersCommand(),
	} {
		cmd.GroupID = group
		root.AddCommand(cmd)
	}
}

// Plugin is the name that the program has as a plugin of kubectl, and how it is then
// called.
const Plugin = "kubectl-informerd"

// CalledAs is what the program is called by, given the first of its arguments.
func CalledAs(program string) string {
	if strings.TrimSuffix(filepath.Base(program), ".exe") == Plugin {
		return "kubectl informerd"
	}
	return "informerd"
}

// The exit codes are those of diff and grep, with one more for usage: a script can tell a no
// from no answer.
const (
	ExitNo          = 1 // the answer is no: not found, differs, not in time
	ExitUsage       = 2 // the question is wrong
	ExitNoAnswer    = 3 // informerd cannot be asked, or does not answer
	exitInterrupted = 130
)

// outcome is an error that decides how the program ends. Without err nothing is said.
type outcome struct {
	code int
	err  error
}

func (o *outcome) Error() string {
	if o.err == nil {
		return fmt.Sprintf("exit code %d", o.code)
	}
	return o.err.Error()
}

func (o *outcome) Unwrap() error { return o.err }

// no is an answer, and not the one that was hoped for.
func no(format string, args ...any) error { return &outcome{ExitNo, fmt.Errorf(format, args...)} }

// silently ends the program without a word: all has been said.
func silently(code int) error { return &outcome{code: code} }

// usagef is a mistake in flags or arguments.
func usagef(format string, args ...any) error {
	return &outcome{ExitUsage, fmt.Errorf(format, args...)}
}

// Printable is a text of several lines that is no order to a terminal: errors name objects,
// and say what servers say.
func Printable(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = oneLine(line)
	}
	return strings.Join(lines, "\n")
}

// Outcome is the exit code that an error of a command ends the program with, and what is to
// be said; "" is nothing. It is not known of errors that are not of this package.
func Outcome(err error) (code int, message string, known bool) {
	var o *outcome
	var status *client.StatusError
	var foreign *client.ForeignError
	var unreachable *client.UnreachableError
	switch {
	case errors.As(err, &o) && o.err == nil:
		return o.code, "", true
	case errors.As(err, &o):
		return o.code, Printable(err.Error()), true
	case errors.As(err, &status):
		return codeOf(status), Printable(err.Error()), true
	case errors.As(err, &foreign), errors.As(err, &unreachable):
		return ExitNoAnswer, Printable(err.Error()), true
	case errors.Is(err, context.Canceled):
		return exitInterrupted, "", true
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return 0, "", true // who reads has seen enough
	}
	return 0, "", false
}

func codeOf(e *client.StatusError) int {
	switch e.Code {
	case 404:
		return ExitNo
	case 400, 414, 422:
		return ExitUsage
	}
	return ExitNoAnswer
}

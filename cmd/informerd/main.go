// Command informerd is a read replica of the Kubernetes API. This package holds
// its flags and commands, and introduces the packages to each other: serve.go
// shows what is started and in which order it stops.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/cmd/informerd/terminal"
)

const (
	exitFailure = 1
	exitUsage   = 2 // flags, arguments and configuration
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// From the first signal on the default is back: a second one ends the
	// process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(runAs(ctx, terminal.CalledAs(os.Args[0]), os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runAs(ctx, "informerd", args, stdout, stderr)
}

// runAs is run under the name that the program was called by.
func runAs(ctx context.Context, name string, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand(name)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var mistakes config.Errors
	var usage *usageError
	switch {
	case errors.As(err, &mistakes):
		fmt.Fprintln(stderr, mistakes)
		return exitUsage
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "informerd: %v\nRun '%s --help' for usage.\n", err, cmd.CommandPath())
		return exitUsage
	}
	if code, message, known := terminal.Outcome(err); known {
		if message != "" {
			fmt.Fprintf(stderr, "informerd: %s\n", message)
		}
		return code
	}
	fmt.Fprintf(stderr, "informerd: %s\n", terminal.Printable(err.Error()))
	return exitFailure
}

// usageError is a mistake in flags or arguments.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

func newRootCommand(name string) *cobra.Command {
	root := &cobra.Command{
		Use:   "informerd",
		Short: "A read replica of the Kubernetes API",
		Long: `informerd watches every resource of a Kubernetes cluster, keeps a compact, indexed
copy in memory and on disk, and answers queries over HTTP.`,
		Example: `  informerd serve                       # the current kubeconfig, on 127.0.0.1:8080
  informerd serve --config config.yaml
  informerd check config.yaml           # is it valid, and what does it select?
  informerd resources                   # what the cluster serves, and what is watched
  informerd get pods -A                 # ask a running one, as kubectl asks the cluster
  informerd search checkout`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          unknownCommand,
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: name}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(
		newServeCommand(),
		newCheckCommand(),
		newResourcesCommand(),
		newRBACCommand(),
		newSnapshotCommand(),
		newVersionCommand(),
	)
	terminal.Commands(root)
	usageErrors(root)
	return root
}

// usageErrors makes wrong arguments of cmd and all below it count as usage.
func usageErrors(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &usageError{err}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		usageErrors(sub)
	}
}

// unknownCommand runs when no command was named.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef("unknown command %q, did you mean %q?", args[0], near[0])
	}
	return usagef("unknown command %q", args[0])
}

// atMost is cobra.MaximumNArgs with an error that counts as usage.
func atMost(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > n {
			return fmt.Errorf("unexpected argument %q", args[n])
		}
		return nil
	}
}

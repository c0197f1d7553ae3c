package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// commands measures what a person in a terminal waits for: commands as whole processes, from
// their start to their end, and the health of everything, which the overview of the page
// begins with.
func (b *bench) commands(ctx context.Context) ([]Row, error) {
	i, err := b.startWatchingAll(ctx)
	if err != nil {
		return nil, err
	}
	defer i.kill()
	c := &terminalCommands{bench: b, informerd: i, took: map[string][]float64{}}
	if err := c.firstHealth(ctx); err != nil {
		return nil, err
	}
	if c.lines, err = c.commandLines(ctx); err != nil {
		return nil, err
	}
	for _, line := range c.lines { // the first of each reads what the others need not
		if err := c.check(ctx, line); err != nil {
			return nil, err
		}
	}
	for round := range b.rounds {
		logf("commands, round %d of %d", round+1, b.rounds)
		if err := c.round(ctx); err != nil {
			return nil, err
		}
	}
	return c.rows(), i.stop()
}

type terminalCommands struct {
	*bench
	informerd *informerd
	lines     []commandLine
	took      map[string][]float64 // seconds by command, the median of each round

	healthFirst, health []float64 // seconds
}

// commandLine is a command, and how many lines it has to say at least.
type commandLine struct {
	text  string
	what  string // text without names that each run has others of; empty: text
	lines int
}

// commandLines are those of docs/cli.md, about things that there are.
func (c *terminalCommands) commandLines(ctx context.Context) ([]commandLine, error) {
	deployments, err := c.cluster.client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(deployments.Items) == 0 {
		return nil, errors.New("there are no Deployments to ask about")
	}
	d := deployments.Items[0]
	pods, err := c.cluster.client.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{Limit: 2})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) < 2 {
		return nil, fmt.Errorf("there are no two pods in %s to compare", d.Namespace)
	}
	one, other := pods.Items[0], pods.Items[1]
	all := c.data.Pods
	return []commandLine{
		{text: "get pods -A", lines: all},
		{text: "get pods -A -o wide", lines: all},
		{text: "get pods -A -o name", lines: all},
		{text: "get pods -A -o csv", lines: all},
		{text: "get pods -A -o custom-columns=N:.metadata.name,I:.spec.containers[*].image", lines: all},
		{text: "get pods -A -o json", lines: all},
		{text: "get pods -n " + d.Namespace, what: "get pods -n NAMESPACE", lines: 2},
		{text: "get pods -A --filter object.spec.nodeName.endsWith('7') -o name", lines: 1},
		{text: "count pods -A --by metadata.namespace", lines: 2},
		{text: "count pods -A --by status.phase,spec.nodeName", lines: 2},
		{text: "search " + d.Name, what: "search NAME", lines: 1},
		{text: "tree deploy/" + d.Name + " -n " + d.Namespace, what: "tree deploy/NAME", lines: 2},
		{text: "used-by pod/" + one.Name + " -n " + d.Namespace, what: "used-by pod/NAME"},
		{text: "dangling"},
		{text: "health"},
		{text: "top", lines: 1},
		{text: "explain pods -A --field-selector spec.nodeName=" + one.Spec.NodeName, what: "explain pods -A --field-selector spec.nodeName=NAME", lines: 1},
		{text: "diff pods/" + one.Name + " pods/" + other.Name + " -n " + d.Namespace, what: "diff pods/NAME pods/NAME", lines: 2},
		{text: "wait pods -A --for object.metadata.name!='' --timeout 1s"},
	}, nil
}

// firstHealth asks for the health of everything as soon as everything is there.
func (c *terminalCommands) firstHealth(ctx context.Context) error {
	took, err := c.askHealth(ctx)
	c.healthFirst = append(c.healthFirst, took)
	return err
}

func (c *terminalCommands) askHealth(ctx context.Context) (seconds float64, err error) {
	var health struct {
		Resources []struct {
			Resource                        string
			Good, Progressing, Bad, Unknown int
		}
	}
	start := time.Now()
	if err := c.informerd.get(ctx, "/v1/health", &health); err != nil {
		return 0, err
	}
	seconds = time.Since(start).Seconds()
	for _, r := range health.Resources {
		if n := r.Good + r.Progressing + r.Bad + r.Unknown; r.Resource == "pods" && n >= c.data.Pods {
			return seconds, nil
		}
	}
	return 0, fmt.Errorf("the health of %d pods is not told: %+v", c.data.Pods, health.Resources)
}

// command is the process of a line.
func (c *terminalCommands) command(ctx context.Context, line commandLine) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.bench.informerd, append(strings.Fields(line.text), "--server", c.informerd.url)...)
	cmd.Env = environment()
	return cmd
}

// check runs a command once and looks at what it says.
func (c *terminalCommands) check(ctx context.Context, line commandLine) error {
	cmd := c.command(ctx, line)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := answered(cmd.Run()); err != nil {
		return fmt.Errorf("informerd %s: %w: %.300s", line.text, err, said.String())
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); n < line.lines {
		return fmt.Errorf("informerd %s has %d lines, want at least %d", line.text, n, line.lines)
	}
	return nil
}

// answered takes exit code 1, by which a command says no, for an answer.
func answered(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return nil
	}
	return err
}

// commandRuns is how often each command runs in a round.
const commandRuns = 7

func (c *terminalCommands) round(ctx context.Context) error {
	if err := c.cluster.settle(ctx); err != nil {
		return err
	}
	for _, line := range c.lines {
		var took []float64
		for range commandRuns {
			cmd := c.command(ctx, line) // whose output goes nowhere: a terminal is no part of it
			start := time.Now()
			if err := answered(cmd.Run()); err != nil {
				return fmt.Errorf("informerd %s: %w", line.text, err)
			}
			took = append(took, time.Since(start).Seconds())
		}
		c.took[line.text] = append(c.took[line.text], median(took))
	}
	var took []float64
	for range commandRuns {
		seconds, err := c.askHealth(ctx)
		if err != nil {
			return err
		}
		took = append(took, seconds)
	}
	c.health = append(c.health, median(took))
	return nil
}

func (c *terminalCommands) rows() []Row {
	rows := []Row{
		{What: "health of everything, as soon as it is there", Unit: unitSeconds, Ours: newFigure("informerd, over HTTP", c.healthFirst), Bar: c.atMostFor(0.150)},
		{What: "health of everything, afterwards", Unit: unitSeconds, Ours: newFigure("informerd, over HTTP", c.health), Bar: noBar},
	}
	for _, line := range c.lines {
		rows = append(rows, Row{What: "informerd " + cmp.Or(line.what, line.text), Unit: unitSeconds, Ours: newFigure("the whole process", c.took[line.text]), Bar: c.atMostFor(0.100)})
	}
	return rows
}

package terminal

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// handlersCommand shows and steers what delivers changes.
type handlersCommand struct {
	connection
	output
	keys []string
}

func newHandlersCommand() *cobra.Command {
	c := &handlersCommand{}
	cmd := &cobra.Command{
		Use:   "handlers [NAME]",
		Short: "Show and steer the handlers that deliver changes",
		Long: `Shows the handlers of the configuration and how they are: what waits to be delivered, for how
long, and what went wrong last. Of one it shows the resources that it follows, too.`,
		Example: `  informerd handlers
  informerd handlers shop
  informerd handlers dead shop
  informerd handlers redrive shop --key pods/shop/web-1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.output.settle(); err != nil {
				return err
			}
			if len(args) > 0 {
				return c.run(cmd, func(s *session) error { return c.one(s, args[0]) })
			}
			return c.run(cmd, c.list)
		},
	}
	c.output.flag(cmd, "table", "json", "name")
	c.connection.flags(cmd)
	cmd.AddCommand(newDeadCommand(), newSteerCommand("pause", "Deliver nothing until it is resumed", "paused"),
		newSteerCommand("resume", "Deliver again what was paused", "resumed"), newRedriveCommand())
	return cmd
}

// handler is what is known of one.
type handler struct {
	Name, Sink, State, Reason, LastError, SaveError string

	Resources []string
	Pending   int
	Oldest    float64 `json:"oldestSeconds"`
	InFlight  int
	Dead      int `json:"deadLetters"`
	PerSecond float64
	Lines     []struct {
		Cluster, Resource, State, Reason string
		Known                            int
	}
}

func (c *handlersCommand) list(s *session) error {
	var raw json.RawMessage
	if err := s.JSON(s.ctx, client.Path("handlers"), nil, &raw); err != nil {
		return err
	}
	var list struct{ Items []handler }
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	if err := c.show(s, raw, list.Items); err != nil {
		return err
	}
	if len(list.Items) == 0 && c.table() {
		s.note("no handlers; they are declared in the configuration: docs/handlers.md")
	}
	return nil
}

func (c *handlersCommand) show(s *session, raw json.RawMessage, all []handler) error {
	switch {
	case c.name == "json":
		return s.writeJSON(raw)
	case c.name == "name":
		for _, h := range all {
			fmt.Fprintln(s.out, oneLine(h.Name))
		}
		return nil
	case len(all) == 0:
		return nil
	}
	g := &grid{colour: s.colour}
	if !c.noHeaders {
		g.header = []string{"NAME", "SINK", "STATE", "PENDING", "OLDEST", "IN FLIGHT", "RATE", "DEAD", "REASON"}
	}
	for _, h := range all {
		g.row(h.Name, h.Sink, h.State, strconv.Itoa(h.Pending), lasting(h.Oldest), strconv.Itoa(h.InFlight),
			fmt.Sprintf("%.1f/s", h.PerSecond), strconv.Itoa(h.Dead), firstText(h.SaveError, h.Reason, h.LastError))
	}
	g.print(s.out)
	return nil
}

func lasting(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}

func firstText(all ...string) string {
	for _, text := range all {
		if text != "" {
			return text
		}
	}
	return ""
}

func (c *handlersCommand) one(s *session, name string) error {
	var raw json.RawMessage
	if err := s.JSON(s.ctx, client.Path("handlers", name), nil, &raw); err != nil {
		return err
	}
	var h handler
	if err := json.Unmarshal(raw, &h); err != nil {
		return err
	}
	if err := c.show(s, raw, []handler{h}); err != nil || !c.table() || len(h.Lines) == 0 {
		return err
	}
	g := &grid{colour: s.colour}
	if !c.noHeaders {
		g.header = []string{"CLUSTER", "RESOURCE", "STATE", "KNOWN", "REASON"}
	}
	for _, l := range h.Lines {
		g.row(l.Cluster, l.Resource, l.State, strconv.Itoa(l.Known), l.Reason)
	}
	fmt.Fprintln(s.out)
	g.print(s.out)
	return nil
}

func newDeadCommand() *cobra.Command {
	c := &handlersCommand{}
	cmd := &cobra.Command{
		Use: "dead NAME", Short: "Show the keys whose delivery was given up, and why", Example: "  informerd handlers dead shop",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.output.settle(); err != nil {
				return err
			}
			return c.run(cmd, func(s *session) error { return c.dead(s, args[0]) })
		},
	}
	c.output.flag(cmd, "table", "json", "name")
	c.connection.flags(cmd)
	return cmd
}

// deadLetter is a key whose delivery was given up.
type deadLetter struct {
	Cluster   string `json:"cluster"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Attempts  int    `json:"-"`
	Error     string `json:"-"`
}

func (d deadLetter) key() string {
	return strings.Join([]string{d.Resource, firstText(d.Namespace, "-"), d.Name}, "/")
}

// letters asks for all dead letters, page by page, and calls page with each answer.
func letters(s *session, name string, page func(raw json.RawMessage) error) error {
	query := url.Values{}
	for {
		var raw json.RawMessage
		if err := s.JSON(s.ctx, client.Path("handlers", name, "deadletters"), query, &raw); err != nil {
			return err
		}
		if err := page(raw); err != nil {
			return err
		}
		var next struct{ Metadata struct{ Continue string } }
		if err := json.Unmarshal(raw, &next); err != nil || next.Metadata.Continue == "" {
			return err
		}
		query.Set("continue", next.Metadata.Continue)
	}
}

func (c *handlersCommand) dead(s *session, name string) error {
	g := &grid{colour: s.colour}
	if !c.noHeaders {
		g.header = []string{"CLUSTER", "KEY", "ATTEMPTS", "ERROR"}
	}
	err := letters(s, name, func(raw json.RawMessage) error {
		if c.name == "json" {
			return s.writeJSON(raw)
		}
		var list struct {
			Items []struct {
				deadLetter
				Attempts int
				Error    string
			}
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		for _, d := range list.Items {
			if c.name == "name" {
				fmt.Fprintln(s.out, oneLine(d.key()))
				continue
			}
			g.row(d.Cluster, d.key(), strconv.Itoa(d.Attempts), d.Error)
		}
		return nil
	})
	switch {
	case err != nil || !c.table():
		return err
	case g.count == 0:
		s.note("no dead letters")
		return nil
	}
	g.print(s.out)
	return nil
}

func newSteerCommand(verb, short, done string) *cobra.Command {
	c := &handlersCommand{}
	cmd := &cobra.Command{
		Use: verb + " NAME", Short: short, Example: "  informerd handlers " + verb + " shop", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd, func(s *session) error {
				var answer struct{ Name string }
				if err := s.Post(s.ctx, client.Path("handlers", args[0], verb), nil, &answer); err != nil {
					return err
				}
				fmt.Fprintf(s.out, "%s %s\n", oneLine(answer.Name), done)
				return nil
			})
		},
	}
	c.connection.flags(cmd)
	return cmd
}

func newRedriveCommand() *cobra.Command {
	c := &handlersCommand{}
	cmd := &cobra.Command{
		Use: "redrive NAME", Short: "Send dead letters again: all, or those named",
		Example: "  informerd handlers redrive shop\n  informerd handlers redrive shop --key pods/shop/web-1", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd, func(s *session) error { return c.redrive(s, args[0]) })
		},
	}
	cmd.Flags().StringSliceVar(&c.keys, "key", nil, "only this `RESOURCE/NAMESPACE/NAME`, as handlers dead shows it; may be repeated")
	c.connection.flags(cmd)
	return cmd
}

func (c *handlersCommand) redrive(s *session, name string) error {
	var body any
	if len(c.keys) > 0 {
		keys, err := c.named(s, name)
		if err != nil {
			return err
		}
		body = map[string]any{"keys": keys}
	}
	var answer struct{ Redriven int }
	if err := s.Post(s.ctx, client.Path("handlers", name, "redrive"), body, &answer); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%d sent again\n", answer.Redriven)
	return nil
}

// named finds the dead letters that the flags name, in whichever clusters they are.
func (c *handlersCommand) named(s *session, name string) (keys []deadLetter, err error) {
	found := map[string]bool{}
	err = letters(s, name, func(raw json.RawMessage) error {
		var list struct{ Items []deadLetter }
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		for _, d := range list.Items {
			for _, key := range c.keys {
				if key == d.key() {
					found[key] = true
					keys = append(keys, d)
				}
			}
		}
		return nil
	})
	for _, key := range c.keys {
		if err == nil && !found[key] {
			return nil, usagef("--key: %q is no dead letter of %s: informerd handlers dead %[2]s shows them, as RESOURCE/NAMESPACE/NAME", key, name)
		}
	}
	return keys, err
}

package terminal

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// output is the form of an answer: a name, and for custom-columns what they are.
type output struct {
	text      string
	name      string
	columns   string
	noHeaders bool
	known     []string
}

// outputs of get. Others have fewer.
var outputs = []string{"table", "wide", "yaml", "json", "name", "csv", "ndjson", "custom-columns"}

func (o *output) flag(cmd *cobra.Command, known ...string) {
	o.known = known
	cmd.Flags().StringVarP(&o.text, "output", "o", "", "`form` of the answer: "+strings.Join(known, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return known, cobra.ShellCompDirectiveNoFileComp
	})
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "tables without the line of names")
}

// settle reads the flag.
func (o *output) settle() error {
	var has bool
	o.name, o.columns, has = strings.Cut(o.text, "=")
	if o.name == "" {
		o.name = "table"
	}
	switch {
	case !slices.Contains(o.known, o.name):
		return usagef("--output: %q is none of %s", o.text, strings.Join(o.known, ", "))
	case o.name == "custom-columns" && o.columns == "":
		return usagef("--output: write the columns as custom-columns=NAME:.metadata.name,NODE:.spec.nodeName")
	case o.name != "custom-columns" && has:
		return usagef("--output: %s takes nothing after it", o.name)
	}
	return nil
}

func (o *output) table() bool { return o.name == "table" || o.name == "wide" }

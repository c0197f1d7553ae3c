package terminal

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// diffCommand compares two objects.
type diffCommand struct {
	*selection
	status  bool
	context int
}

func newDiffCommand() *cobra.Command {
	c := &diffCommand{selection: newSelection()}
	cmd := &cobra.Command{
		Use:   "diff OBJECT OBJECT | OBJECT --cluster A --cluster B",
		Short: "Compare two objects, or one object in two clusters",
		Long: `Compares two objects as YAML, or the object of one name in two clusters, without what
differs always: status, managedFields, UIDs, versions, times and what kubectl apply notes. An
object is KIND/NAME or KIND/NAMESPACE/NAME. The exit code is that of diff: 0 if they are equal,
1 if they differ.`,
		Example: `  informerd diff deploy/shop/web deploy/staging/web
  informerd diff cm/settings cm/settings-new -n shop
  informerd diff deploy/web -n shop --cluster east --cluster west`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.selection.settle(); err != nil {
				return err
			}
			sides, err := c.sides(args)
			if err != nil {
				return err
			}
			return c.run(cmd, func(s *session) error { return c.diff(s, sides) })
		},
	}
	c.placeFlags(cmd)
	cmd.Flags().BoolVar(&c.status, "status", false, "compare the status, too")
	cmd.Flags().IntVarP(&c.context, "unified", "U", 3, "`lines` to show around what differs")
	c.connection.flags(cmd)
	return cmd
}

// side is one of the objects.
type side struct {
	target
	cluster string
}

func (c *diffCommand) sides(args []string) ([2]side, error) {
	var two [2]side
	for i, arg := range args {
		t, err := parseReference(arg)
		if err = errors.Join(err, checkNames([]target{t})); err != nil {
			return two, err
		}
		two[i].target = t
	}
	switch {
	case len(args) == 1 && len(c.clusters) == 2:
		two[1] = two[0]
		two[0].cluster, two[1].cluster = c.clusters[0], c.clusters[1]
	case len(args) == 1:
		return two, usagef("compare it with what? Name another object, or two clusters with --cluster")
	case len(c.clusters) > 1:
		return two, usagef("two objects are of one cluster here: name one object for two clusters")
	case len(c.clusters) == 1:
		two[0].cluster, two[1].cluster = c.clusters[0], c.clusters[0]
	}
	return two, nil
}

func (c *diffCommand) diff(s *session, sides [2]side) error {
	var lines [2][]string
	var names [2]string
	for i, side := range sides {
		sel := *c.selection
		sel.clusters = nil
		if side.cluster != "" {
			sel.clusters = []string{side.cluster}
		}
		steps, err := s.locate(&sel, side.target)
		if err != nil {
			return err
		}
		text, err := c.text(s, steps, side.cluster)
		if err != nil {
			return err
		}
		names[i] = strings.TrimPrefix(side.cluster+"/"+strings.Join(steps, "/"), "/")
		lines[i] = slices.Collect(strings.Lines(text))
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines[0], B: lines[1], FromFile: names[0], ToFile: names[1], Context: max(c.context, 0),
	})
	if err != nil || text == "" {
		return err
	}
	for line := range strings.Lines(text) {
		line = oneLine(strings.TrimSuffix(line, "\n"))
		if s.colour {
			line = paint(line, diffColour(line))
		}
		s.out.WriteString(line + "\n")
	}
	return silently(ExitNo)
}

func diffColour(line string) string {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		return bold
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	case strings.HasPrefix(line, "@@"):
		return cyan
	}
	return plain
}

// text is the YAML of an object, without what differs always.
func (c *diffCommand) text(s *session, steps []string, cluster string) (string, error) {
	v := url.Values{}
	if cluster != "" {
		v.Set("cluster", cluster)
	}
	var raw json.RawMessage
	if err := s.JSON(s.ctx, objectPath(steps), v, &raw); err != nil {
		return "", err
	}
	var object map[string]any
	if err := yaml.Unmarshal(raw, &object); err != nil {
		return "", err
	}
	clean(object, c.status)
	text, err := yaml.Marshal(object)
	return string(text), err
}

// clean takes out what no two objects share, and what nobody has written.
func clean(object map[string]any, status bool) {
	if !status {
		delete(object, "status")
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return
	}
	for _, name := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "name", "namespace"} {
		delete(metadata, name)
	}
	if owners, ok := metadata["ownerReferences"].([]any); ok {
		for _, o := range owners {
			if owner, ok := o.(map[string]any); ok {
				delete(owner, "uid")
			}
		}
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		return
	}
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	delete(annotations, "deployment.kubernetes.io/revision")
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}

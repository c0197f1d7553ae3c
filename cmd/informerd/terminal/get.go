package terminal

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// getCommand shows objects.
type getCommand struct {
	*selection
	output
	sort       string
	fields     string
	showLabels bool
}

func newGetCommand() *cobra.Command {
	g := &getCommand{selection: newSelection()}
	cmd := &cobra.Command{
		Use:   "get KINDS [NAME...] | KIND/NAME...",
		Short: "Show objects, with the columns of kubectl get",
		Long: `Shows objects of one kind or of several, with the columns that kubectl get prints. Kinds
are named as for kubectl, in any case; '*' is every kind there is, '*.apps' those of a group,
all what it is to kubectl. An object may also be named by its id, KIND/NAMESPACE/NAME.

Named objects that are not there are an error and exit code 1; that nothing is selected is
none.`,
		Example: `  informerd get pods -A
  informerd get deploy,sts,ds -n shop -o wide
  informerd get pods -A --field-selector status.phase!=Running --sort-by=-metadata.creationTimestamp
  informerd get deploy -A --filter 'object.?status.unavailableReplicas.orValue(0) > 0'
  informerd get '*' -A -l app.kubernetes.io/part-of=shop -o name
  informerd get pods -A -o custom-columns=POD:.metadata.name,IMAGES:.spec.containers[*].image`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: g.completeTargets,
		RunE:              g.onTargets(&g.output, g.get),
	}
	g.placeFlags(cmd)
	g.selectFlags(cmd)
	g.limitFlag(cmd)
	g.output.flag(cmd, outputs...)
	cmd.Flags().StringVar(&g.sort, "sort-by", "", "`path` to order by, descending with a - before it; several with commas")
	cmd.Flags().StringVar(&g.fields, "fields", "", "`paths` to answer with instead of whole objects (json, yaml, ndjson), or the columns of csv")
	cmd.Flags().BoolVar(&g.showLabels, "show-labels", false, "a column with the labels")
	_ = cmd.RegisterFlagCompletionFunc("sort-by", g.complete((*session).paths))
	_ = cmd.RegisterFlagCompletionFunc("fields", g.complete((*session).paths))
	g.connection.flags(cmd)
	return cmd
}

func (g *getCommand) get(s *session, targets []target) error {
	questions, err := s.questions(g.selection, targets)
	if err != nil {
		return err
	}
	lacking, err := s.lacking(g.selection, questions)
	if err != nil {
		return err
	}
	err = g.print(s, questions)
	var refused *client.StatusError
	if errors.As(err, &refused) && refused.Code == 404 && len(lacking) > 0 {
		err = nil // lacking says so; else it has gone since
	}
	if err != nil {
		return err
	}
	return errors.Join(lacking...)
}

// values are the parameters of q in the form that is wanted.
func (g *getCommand) values(q question) url.Values {
	v := q.values(g.selection)
	if g.sort != "" {
		v.Set("sort", sortPaths(g.sort))
	}
	if g.fields != "" {
		v.Set("fields", g.fields)
	}
	return v
}

// sortPaths reads the paths of kubectl's --sort-by, too: {.metadata.name}.
func sortPaths(text string) string {
	paths := strings.Split(text, ",")
	for i, p := range paths {
		rest, descending := strings.CutPrefix(strings.TrimSpace(p), "-")
		rest = strings.TrimPrefix(strings.Trim(rest, "{}"), ".")
		if descending {
			rest = "-" + rest
		}
		paths[i] = rest
	}
	return strings.Join(paths, ",")
}

func (g *getCommand) print(s *session, questions []question) error {
	switch g.name {
	case "table", "wide":
		return g.printTables(s, questions)
	case "name":
		return g.printNames(s, questions)
	case "custom-columns":
		return g.printColumns(s, questions)
	case "csv", "ndjson":
		return g.copyLines(s, questions)
	}
	if len(questions) == 1 {
		if steps, ok := questions[0].object(g.selection); ok {
			err := g.printObject(s, steps)
			var refused *client.StatusError
			if !errors.As(err, &refused) || !refused.Names("cluster") {
				return err // else there is one in each of several clusters
			}
		}
		return g.copyList(s, questions[0])
	}
	return g.printLists(s, questions)
}

// lacking are the errors of named objects that are not there.
func (s *session) lacking(sel *selection, questions []question) (errs []error, err error) {
	for _, q := range questions {
		if len(q.names) == 0 {
			continue
		}
		v := q.values(sel)
		v.Set("fields", "metadata.name")
		var found struct{ Items []partial }
		if err := s.JSON(s.ctx, client.Path("query"), v, &found); err != nil {
			return nil, err
		}
		for _, name := range q.names {
			if !slices.ContainsFunc(found.Items, func(p partial) bool { return p.Metadata.Name == name }) {
				errs = append(errs, s.notFound(sel, q, name))
			}
		}
	}
	return errs, nil
}

// notFound is why there is no object of a name, in informerd's own words where it can be
// asked for alone: it may be that it is only not watched.
func (s *session) notFound(sel *selection, q question, name string) error {
	only := q
	only.names = []string{name}
	if steps, ok := only.object(sel); ok {
		var ignored struct{}
		v := url.Values{}
		if len(sel.clusters) == 1 {
			v.Set("cluster", sel.clusters[0])
		}
		err := s.JSON(s.ctx, objectPath(steps), v, &ignored)
		var refused *client.StatusError
		if errors.As(err, &refused) && sel.namespaceFrom != "" {
			return no("%s; looked %s", refused.Message, sel.where())
		}
		if err != nil {
			return err
		}
	}
	return no("%s %q not found %s", strings.Join(q.resources, ","), name, sel.where())
}

func objectPath(steps []string) string {
	return client.Path("resources", steps[0], "objects", steps[1], steps[2])
}

// partial is what is read of an object that is only named.
type partial struct {
	Kind       string
	APIVersion string
	Cluster    string
	Metadata   struct {
		Name, Namespace, UID, ResourceVersion string
		CreationTimestamp                     string
		DeletionTimestamp                     string
		Labels                                map[string]string
	}
}

func (p *partial) typeName() string { return typeName(p.Kind, groupOf(p.APIVersion)) }

// groupOf is the group of an apiVersion.
func groupOf(version string) string {
	group, _, ok := strings.Cut(version, "/")
	if !ok {
		return ""
	}
	return group
}

// printObject shows one object, bare.
func (g *getCommand) printObject(s *session, steps []string) error {
	v := url.Values{}
	if g.fields != "" {
		v.Set("fields", g.fields)
	}
	if len(g.clusters) == 1 {
		v.Set("cluster", g.clusters[0])
	}
	if g.name == "json" {
		v.Set("pretty", "true")
	}
	resp, err := s.Get(s.ctx, objectPath(steps), v)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if g.name == "json" {
		return s.copy(resp.Body)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return s.Broken(s.ctx, err)
	}
	return writeYAML(s.out, body)
}

func writeYAML(out *bufio.Writer, object []byte) error {
	text, err := yaml.JSONToYAML(object)
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

// copy hands an answer on while it comes in.
func (s *session) copy(body io.Reader) error {
	r := &readErrors{Reader: body}
	var err error
	if s.screen {
		err = s.show(r)
	} else {
		_, err = io.CopyBuffer(writerOnly{s.out}, r, make([]byte, copySize))
	}
	if r.err != nil {
		return s.Broken(s.ctx, r.err)
	}
	return err
}

// copySize is how much is handed on at a time: a list of 20,000 pods is 94 MB.
const copySize = 256 << 10

// writerOnly hides the ReadFrom of a writer, which would read in smaller pieces.
type writerOnly struct{ io.Writer }

// show is copy to a terminal: CSV has the control characters that objects have.
func (s *session) show(body io.Reader) error {
	in := bufio.NewReaderSize(body, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if _, failed := s.out.Write(s.shown(line)); failed != nil || err == io.EOF {
			return failed
		}
		if err != nil {
			return err
		}
	}
}

// readErrors tells errors of reading from those of writing.
type readErrors struct {
	io.Reader
	err error
}

func (r *readErrors) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// copyList prints a list as informerd writes it: indented for people alone, since that makes half
// as much again of it and takes three times as long.
func (g *getCommand) copyList(s *session, q question) error {
	v := g.values(q)
	switch {
	case g.name == "yaml":
		v.Set("output", "yaml")
	case s.screen:
		v.Set("pretty", "true")
	default:
		v.Set("pretty", "items")
	}
	return s.pass(client.Path("query"), v)
}

// pass prints an answer as it is.
func (s *session) pass(path string, v url.Values) error {
	resp, err := s.Get(s.ctx, path, v)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return s.copy(resp.Body)
}

// copyLines prints lines as informerd writes them; of several answers the first has the
// names of the columns.
func (g *getCommand) copyLines(s *session, questions []question) error {
	for n, q := range questions {
		v := g.values(q)
		v.Set("output", g.name)
		resp, err := s.Get(s.ctx, client.Path("query"), v)
		if err != nil {
			return err
		}
		body := bufio.NewReader(resp.Body)
		if g.name == "csv" && (n > 0 || g.noHeaders) {
			_, _ = body.ReadString('\n')
		}
		err = s.copy(body)
		resp.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// printLists makes one list of several answers.
func (g *getCommand) printLists(s *session, questions []question) error {
	items := []json.RawMessage{}
	for _, q := range questions {
		var list struct{ Items []json.RawMessage }
		if err := s.JSON(s.ctx, client.Path("query"), g.values(q), &list); err != nil {
			return err
		}
		items = append(items, list.Items...)
	}
	if g.name == "json" && !s.screen {
		return writeItems(s.out, items)
	}
	body, err := json.MarshalIndent(map[string]any{"kind": "List", "apiVersion": "v1", "metadata": struct{}{}, "items": items}, "", "  ")
	if err != nil {
		return err
	}
	if g.name == "yaml" {
		return writeYAML(s.out, body)
	}
	_, err = s.out.Write(append(body, '\n'))
	return err
}

// writeItems writes a List as informerd does one of a single answer: each item begins a line.
func writeItems(out *bufio.Writer, items []json.RawMessage) error {
	_, _ = out.WriteString(`{"kind":"List","apiVersion":"v1","metadata":{},"items":[`)
	for i, item := range items {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_ = out.WriteByte('\n')
		_, _ = out.Write(item)
	}
	if len(items) > 0 {
		_ = out.WriteByte('\n')
	}
	_, err := out.WriteString("]}\n") // a bufio.Writer keeps its first error
	return err
}

// printNames writes pod/web-1, deployment.apps/web, as kubectl does.
func (g *getCommand) printNames(s *session, questions []question) error {
	for _, q := range questions {
		v := g.values(q)
		v.Set("fields", "metadata.name")
		v.Set("output", "ndjson")
		err := s.lines(v, func(line []byte) error {
			var kind, version, name client.Value
			err := client.NewValue(line).Members(func(member []byte, value client.Value) error {
				switch string(member) {
				case "kind":
					kind = value
				case "apiVersion":
					version = value
				case "metadata":
					return value.Members(func(member []byte, value client.Value) error {
						if string(member) == "name" {
							name = value
						}
						return nil
					})
				}
				return nil
			})
			if err != nil {
				return s.Broken(s.ctx, err)
			}
			s.out.WriteString(typeName(kind.Text(), groupOf(version.Text())))
			s.out.WriteByte('/')
			s.out.WriteString(oneLine(name.Text()))
			return s.out.WriteByte('\n')
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// lines asks a question whose answer is one object a line. A line is valid until the next
// one is read.
func (s *session) lines(v url.Values, each func([]byte) error) error {
	resp, err := s.Get(s.ctx, client.Path("query"), v)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	in := bufio.NewReaderSize(resp.Body, 256<<10)
	for {
		line, err := in.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			var rest []byte
			line = slices.Clone(line)
			rest, err = in.ReadBytes('\n')
			line = append(line, rest...)
		}
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil {
			return s.Broken(s.ctx, err)
		}
		if err := each(line); err != nil {
			return err
		}
	}
}

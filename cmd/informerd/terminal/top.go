package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// topCommand shows where most is asked for, or held.
type topCommand struct {
	*selection
	noHeaders bool
}

func newTopCommand() *cobra.Command {
	c := &topCommand{selection: everywhere()}
	cmd := &cobra.Command{
		Use:   "top [nodes | namespaces | kinds]",
		Short: "Show what pods request of nodes, by node or namespace; or the largest kinds",
		Long: `Shows, the greatest first,

  nodes       how much CPU and memory the pods of each node request, and may use at most
              (limits), with the share of what the node has to give (allocatable)
  namespaces  the same by namespace
  kinds       how many objects there are of each kind, and how large they are

These are requests and limits, which scheduling goes by, and not what is used at this moment:
kubectl top shows that, where there is a metrics server. Pods that have ended are left out, and
of the others the containers are added up, with the overhead of their runtime class; init
containers and requests of a pod as a whole (spec.resources) are not in the sums.`,
		Example: `  informerd top
  informerd top namespaces --limit 10
  informerd top kinds --limit 5`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"nodes", "namespaces", "kinds"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.selection.settle(); err != nil {
				return err
			}
			show := map[string]func(*session) error{"nodes": c.nodes, "namespaces": c.byNamespace, "kinds": c.kinds}
			return c.run(cmd, show[append(args, "nodes")[0]])
		},
	}
	c.placeFlags(cmd)
	c.selectFlags(cmd)
	c.limitFlag(cmd)
	cmd.Flags().BoolVar(&c.noHeaders, "no-headers", false, "without the line of names")
	c.connection.flags(cmd)
	return cmd
}

// Sums over the containers of pods, and the overhead of each pod.
const (
	cpuRequests    = "sum(spec.containers[*].resources.requests.cpu)"
	cpuLimits      = "sum(spec.containers[*].resources.limits.cpu)"
	memoryRequests = "sum(spec.containers[*].resources.requests.memory)"
	memoryLimits   = "sum(spec.containers[*].resources.limits.memory)"
	cpuOverhead    = "sum(spec.overhead.cpu)"
	memoryOverhead = "sum(spec.overhead.memory)"
)

// phase is what pods are grouped by besides: to select by what no index has would read all of
// them before they are read to be added up.
const phase = "status.phase"

// ended are the phases of pods that ask for nothing any more.
var ended = []string{"Succeeded", "Failed"}

// demand is what the pods of one group ask for.
type demand struct {
	name                               string
	pods                               int64
	cpu, cpuLimit, memory, memoryLimit resource.Quantity
	allocatableCPU, allocatableMemory  resource.Quantity
	allocatablePods                    resource.Quantity
}

// demands groups pods that have not ended.
func (c *topCommand) demands(s *session, path string) ([]*demand, error) {
	v := c.values(true)
	v.Del("limit")
	v.Set("resources", "pods")
	v.Set("groupBy", path+","+phase)
	v.Set("agg", strings.Join([]string{counted, cpuRequests, cpuLimits, memoryRequests, memoryLimits, cpuOverhead, memoryOverhead}, ","))
	list, err := s.groups(v)
	if err != nil {
		return nil, err
	}
	var all []*demand
	byName := map[string]*demand{}
	for _, item := range list.Items {
		if slices.Contains(ended, valueText(item.Group[phase])) {
			continue
		}
		name := valueText(item.Group[path])
		d := byName[name]
		if d == nil {
			d = &demand{name: name}
			byName[name], all = d, append(all, d)
		}
		if err := d.add(item.Values); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// add adds what one group of pods asks for.
func (d *demand) add(values map[string]any) error {
	pods, err := strconv.ParseInt(valueText(values[counted]), 10, 64)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", counted, d.name, err)
	}
	d.pods += pods
	for agg, into := range map[string][]*resource.Quantity{
		cpuRequests: {&d.cpu}, cpuLimits: {&d.cpuLimit}, memoryRequests: {&d.memory}, memoryLimits: {&d.memoryLimit},
		cpuOverhead: {&d.cpu, &d.cpuLimit}, memoryOverhead: {&d.memory, &d.memoryLimit},
	} {
		for _, sum := range into {
			if err := addTo(sum, values[agg]); err != nil {
				return fmt.Errorf("%s of %s: %w", agg, d.name, err)
			}
		}
	}
	return nil
}

// addTo adds a sum, which is a number, a quantity or null.
func addTo(sum *resource.Quantity, value any) error {
	if value == nil {
		return nil
	}
	q, err := resource.ParseQuantity(fmt.Sprint(value))
	if err == nil {
		sum.Add(q)
	}
	return err
}

func (c *topCommand) nodes(s *session) error {
	var nodes struct {
		Items []struct {
			partial
			Status struct{ Allocatable map[string]resource.Quantity }
		}
	}
	v, err := c.cluster(c.selection.values(false))
	if err != nil {
		return err
	}
	for _, name := range []string{"labelSelector", "fieldSelector", "filter", "limit"} {
		v.Del(name) // those of pods
	}
	v.Set("resources", "nodes")
	v.Set("fields", "metadata.name,status.allocatable")
	if err := s.JSON(s.ctx, client.Path("query"), v, &nodes); err != nil {
		return err
	}
	for _, n := range nodes.Items {
		if n.Cluster != nodes.Items[0].Cluster {
			return usagef("there are nodes of several clusters: say which with --cluster")
		}
	}
	demands, err := c.demands(s, "spec.nodeName")
	if err != nil {
		return err
	}
	byName := map[string]*demand{}
	for _, d := range demands {
		byName[d.name] = d
	}
	for _, n := range nodes.Items {
		d := byName[n.Metadata.Name]
		if d == nil {
			d = &demand{name: n.Metadata.Name}
			demands = append(demands, d)
		}
		d.allocatableCPU, d.allocatableMemory = n.Status.Allocatable["cpu"], n.Status.Allocatable["memory"]
		d.allocatablePods = n.Status.Allocatable["pods"]
	}
	c.print(s, "NODE", demands)
	return nil
}

func (c *topCommand) byNamespace(s *session) error {
	demands, err := c.demands(s, "metadata.namespace")
	if err != nil {
		return err
	}
	c.print(s, "NAMESPACE", demands)
	return nil
}

func (c *topCommand) print(s *session, title string, demands []*demand) {
	slices.SortStableFunc(demands, func(a, b *demand) int {
		return cmp.Or(b.cpu.Cmp(a.cpu), b.memory.Cmp(a.memory), strings.Compare(a.name, b.name))
	})
	shown := demands
	if c.limit > 0 && len(shown) > c.limit {
		shown = shown[:c.limit]
	}
	g := &grid{colour: s.colour}
	if !c.noHeaders {
		g.header = []string{title, "PODS", "CPU REQUESTS", "CPU LIMITS", "MEMORY REQUESTS", "MEMORY LIMITS"}
	}
	for _, d := range shown {
		pods := strconv.FormatInt(d.pods, 10)
		if !d.allocatablePods.IsZero() {
			pods += "/" + d.allocatablePods.String()
		}
		name := d.name
		if name == "<none>" {
			name = "(on no node)"
		}
		g.row(name, pods, cores(d.cpu, d.allocatableCPU), cores(d.cpuLimit, d.allocatableCPU),
			bytesOf(d.memory, d.allocatableMemory), bytesOf(d.memoryLimit, d.allocatableMemory))
	}
	g.print(s.out)
	if len(shown) < len(demands) {
		s.note("%d more are not shown: --limit %d", len(demands)-len(shown), c.limit)
	}
}

func cores(q, of resource.Quantity) string {
	return share(strconv.FormatFloat(q.AsApproximateFloat64(), 'f', 2, 64), q, of)
}

func bytesOf(q, of resource.Quantity) string {
	return share(size(q.AsApproximateFloat64()), q, of)
}

// size is a number of bytes in the unit that keeps it short.
func size(bytes float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if bytes < 1024 {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", bytes), ".0") + " " + unit
		}
		bytes /= 1024
	}
	return fmt.Sprintf("%.1f TiB", bytes)
}

func share(text string, q, of resource.Quantity) string {
	if of.IsZero() {
		return text
	}
	return fmt.Sprintf("%s (%.0f%%)", text, 100*q.AsApproximateFloat64()/of.AsApproximateFloat64())
}

// kinds shows which resources are largest.
func (c *topCommand) kinds(s *session) error {
	if c.labels+c.fields+c.filter != "" || len(c.namespaces) > 0 {
		return usagef("top kinds is about all objects: to count some, count '*' with the same flags")
	}
	v, err := c.cluster(map[string][]string{})
	if err != nil {
		return err
	}
	all, err := s.resources(v)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.RawBytes, a.RawBytes), cmp.Compare(b.Objects, a.Objects))
	})
	g := &grid{colour: s.colour}
	if !c.noHeaders {
		g.header = []string{"KIND", "OBJECTS", "JSON", "HELD IN", "CHANGES", "STATE"}
	}
	shown := all
	if c.limit > 0 && len(shown) > c.limit {
		shown = shown[:c.limit]
	}
	for _, k := range shown {
		g.row(k.Name, strconv.Itoa(k.Objects), size(float64(k.RawBytes)), size(float64(k.Bytes)), strconv.Itoa(k.Counts.Events), k.State)
	}
	g.print(s.out)
	return nil
}

package test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// TestAlerts: every alert of the chart is PromQL, and says what it is and how bad.
func TestAlerts(t *testing.T) {
	rule := get[*prometheusRule](t, installed.objects(t, given+"prometheusRule: {enabled: true}"), "PrometheusRule/informerd/informerd")
	all := rule.Spec.Groups[0].Rules
	if len(all) < 7 {
		t.Errorf("%d alerts, docs/operations.md has more", len(all))
	}
	for _, a := range all {
		parse(t, a.Alert, a.Expr)
		if a.For != "" {
			if _, err := time.ParseDuration(a.For); err != nil {
				t.Errorf("%s: %v", a.Alert, err)
			}
		}
		if a.Labels["severity"] != "warning" && a.Labels["severity"] != "critical" || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s does not say what it is: %+v", a.Alert, a)
		}
	}
}

func parse(t *testing.T, where, expr string) {
	t.Helper()
	if _, err := parser.NewParser(parser.Options{}).ParseExpr(expr); err != nil {
		t.Errorf("%s: %q: %v", where, expr, err)
	}
}

// dashboard is what is looked at of Grafana's JSON.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name, Type string
			Definition string
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ H, W, X, Y int }
		Targets []struct {
			RefID string `json:"refId"`
			Expr  string
		}
	} `json:"panels"`
}

var (
	variable    = regexp.MustCompile(`\$\{?(\w+)\}?`)
	labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
)

// TestDashboard: every question of the dashboard is PromQL with variables that there
// are, and no panel hides another.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(chartFolder + "/files/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"__rate_interval": "5m"}
	for _, v := range d.Templating.List {
		values[v.Name] = ".*"
	}
	fill := func(expr string) string {
		return variable.ReplaceAllStringFunc(expr, func(name string) string {
			value, ok := values[variable.FindStringSubmatch(name)[1]]
			if !ok {
				t.Errorf("%q: there is no variable %s", expr, name)
			}
			return value
		})
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		if m := labelValues.FindStringSubmatch(v.Definition); m == nil {
			t.Errorf("variable %s is %q", v.Name, v.Definition)
		} else {
			parse(t, v.Name, fill(m[1]))
		}
	}
	taken, ids, asked := map[[2]int]string{}, map[int]bool{}, 0
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" || at[0] >= 24 {
					t.Fatalf("%q is over %q, or beyond the edge", p.Title, taken[at])
				}
				taken[at] = p.Title
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%q asks nothing", p.Title)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] {
				t.Errorf("%q asks %s twice", p.Title, target.RefID)
			}
			refs[target.RefID] = true
			parse(t, p.Title, fill(target.Expr))
			asked++
		}
	}
	if asked < 25 || !strings.Contains(string(text), "informerd_resource_state") {
		t.Errorf("the dashboard asks %d things, the test finds too few", asked)
	}
}

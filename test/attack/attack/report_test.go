package attack

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/test/attack/hostile"
	"github.com/informerd/informerd/test/attack/innocent"
	"github.com/informerd/informerd/test/attack/rig"
)

// phase has one answer to each question, after as long as is said.
func phase(took time.Duration) innocent.Phase {
	p := innocent.Phase{Times: innocent.Times{}, Failed: map[string]int{}}
	for _, question := range innocent.Questions {
		p.Times[question] = []time.Duration{took}
	}
	return p
}

func good() *Result {
	return &Result{
		Alone: phase(time.Millisecond), Attacked: phase(3 * time.Millisecond), Attacks: hostile.Tally{"navigate": {"403": 7}, "scrape": {"200": 1, "429": 2}},
		Calm: rig.MemoryUse{Resident: 80 << 20, Virtual: 1500 << 20}, Memory: rig.MemoryUse{ResidentPeak: 900 << 20, VirtualPeak: 2500 << 20},
		Authorization: "rbac", Nice: 10, Only: []string{"navigate", "scrape"}, Took: time.Minute, Stop: 1500 * time.Millisecond,
	}
}

func TestVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		spoil       func(*Result)
		wrong, slow string
	}{
		"good":              {func(*Result) {}, "", ""},
		"slow":              {func(r *Result) { r.Attacked.Times[innocent.Get][0] = 31 * time.Millisecond / 10 }, "", "single object: 3.1 times"},
		"slow API server":   {func(r *Result) { r.Attacked.Times[innocent.ServerGet] = []time.Duration{time.Second} }, "", ""},
		"died":              {func(r *Result) { r.Died = errors.New("out of memory") }, "out of memory", ""},
		"no end":            {func(r *Result) { r.StopErr = errors.New("killed") }, "stop well: killed", ""},
		"not answered":      {func(r *Result) { r.Attacked.Failed[innocent.List] = 1 }, "under attack, short list: 1 of 2", ""},
		"never answered":    {func(r *Result) { delete(r.Attacked.Times, innocent.Event) }, "change, until a watch tells it: never", ""},
		"not answered once": {func(r *Result) { r.Alone.Failed[innocent.List] = 1 }, "alone, short list: 1 of 2", ""},
		"a navigation":      {func(r *Result) { r.Attacks["navigate"]["200"] = 3 }, "navigate: 200: 3", ""},
		"not attacked":      {func(r *Result) { delete(r.Attacks, "scrape") }, "scrape: nothing came of it", ""},
		"a failure":         {func(r *Result) { r.Attacks["scrape"]["500"] = 3 }, "scrape: 500: 3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := good()
			c.spoil(r)
			if got := strings.Join(r.Wrong(), "; "); !strings.Contains(got, c.wrong) || (got == "") != (c.wrong == "") {
				t.Errorf("wrong is %q, want %q", got, c.wrong)
			}
			if got := strings.Join(r.Slow(), "; "); !strings.Contains(got, c.slow) || (got == "") != (c.slow == "") {
				t.Errorf("slow is %q, want %q", got, c.slow)
			}
		})
	}
}

func TestPrint(t *testing.T) {
	r := good()
	r.Attacked.Times[innocent.Get] = []time.Duration{2 * time.Millisecond, 40 * time.Millisecond}
	r.Attacked.Failures = []innocent.Failure{{Question: innocent.List, Err: errors.New("429")}}
	r.Attacked.Failed[innocent.List] = 1
	var b strings.Builder
	r.Print(&b)
	lines := strings.Split(b.String(), "\n")
	for _, want := range []string{
		"single object 1 1.0ms 1.0ms 2 2.0ms 40.0ms 40.0ms 40.0 0",
		"short list 1 1.0ms 1.0ms 1 3.0ms 3.0ms 3.0ms 3.0 1",
		"(single object, API server) 0 - - 0 - - - 0.0 0",
		"navigate navigations and frames from another site 403: 7",
		"scrape thousands of /metrics 200: 1 429: 2",
		"resident 80 MB before, most 900 MB; address space 1500 MB before, most 2500 MB",
		"informerd lived, and stopped within 1.5 s of SIGTERM",
		"SLOW single object: 40.0 times as long",
		"WRONG under attack, short list: 1 of 2 without the answer",
	} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Join(strings.Fields(line), " ") == want }) {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
}

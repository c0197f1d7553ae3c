package attack

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/informerd/informerd/test/attack/hostile"
	"github.com/informerd/informerd/test/attack/innocent"
	"github.com/informerd/informerd/test/attack/rig"
)

// Bar is how many times as long the user's answers may take under attack, at the 99th
// percentile.
const Bar = 3.0

// Result is what an attack did.
type Result struct {
	Alone, Attacked innocent.Phase
	Attacks         hostile.Tally
	// Calm is the memory informerd had before the attack, Memory that at its end.
	Calm, Memory rig.MemoryUse
	// Authorization, Nice and Only are those of the Options.
	Authorization string
	Nice          int
	Only          []string
	// Took is how long it lasted.
	Took time.Duration
	// Died is how informerd ended by itself, nil if it lived.
	Died error
	// Stop is how long it took to stop, StopErr what was wrong with it.
	Stop    time.Duration
	StopErr error
}

// Ratio is by how much a question took longer under attack, at the 99th percentile; 0 if
// there is nothing to compare.
func (r *Result) Ratio(question string) float64 {
	before := innocent.Percentile(r.Alone.Times[question], 0.99)
	if before == 0 {
		return 0
	}
	return float64(innocent.Percentile(r.Attacked.Times[question], 0.99)) / float64(before)
}

// Wrong is what must not be, whatever the machine: informerd died or did not stop, the
// user was not answered, or an attack got an answer that no server may give.
func (r *Result) Wrong() []string {
	var wrong []string
	if r.Died != nil {
		wrong = append(wrong, r.Died.Error())
	}
	if r.StopErr != nil {
		wrong = append(wrong, fmt.Sprintf("it did not stop well: %v", r.StopErr))
	}
	for name, phase := range map[string]innocent.Phase{"alone": r.Alone, "under attack": r.Attacked} {
		for _, question := range slices.Sorted(maps.Keys(phase.Failed)) {
			wrong = append(wrong, fmt.Sprintf("%s, %s: %d of %d without the answer", name, question, phase.Failed[question], phase.Failed[question]+len(phase.Times[question])))
		}
	}
	for _, attack := range missing(r.Attacks, r.Only) {
		wrong = append(wrong, attack+": nothing came of it, so it proves nothing")
	}
	for attack, outcomes := range r.Attacks.Unexpected() {
		wrong = append(wrong, fmt.Sprintf("%s: %s", attack, counts(outcomes)))
	}
	for _, question := range innocent.Questions {
		if len(r.Alone.Times[question]) == 0 || len(r.Attacked.Times[question]) == 0 {
			wrong = append(wrong, question+": never answered alone, or under attack")
		}
	}
	slices.Sort(wrong)
	return wrong
}

// Slow are the questions that take longer under attack than Bar allows.
func (r *Result) Slow() []string {
	var slow []string
	for _, question := range innocent.Questions {
		if ratio := r.Ratio(question); ratio > Bar {
			slow = append(slow, fmt.Sprintf("%s: %.1f times as long", question, ratio))
		}
	}
	return slow
}

func (r *Result) niceness() string {
	text := fmt.Sprintf("at nice %d", r.Nice)
	if r.Nice >= Idle {
		text = "when nothing else runs"
	}
	if autogroup() {
		text += " (which counts for little: " + autogroupFile + " is 1)"
	}
	return text
}

// autogroupFile says whether the kernel shares processors among sessions first, and by
// niceness only then. With it on answers take three times as long under the same attack.
const autogroupFile = "/proc/sys/kernel/sched_autogroup_enabled"

func autogroup() bool {
	data, err := os.ReadFile(autogroupFile)
	return err == nil && strings.TrimSpace(string(data)) == "1"
}

// Print writes it as tables.
func (r *Result) Print(out io.Writer) {
	fmt.Fprintf(out, "\nauthorization %s, ulimit -v %s, GOMEMLIMIT %s, attackers on the same machine %s; attacked for %v\n\n",
		r.Authorization, size(rig.Virtual<<10), rig.Memory, r.niceness(), r.Took.Round(time.Second))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "THE USER\tALONE\tP50\tP99\tATTACKED\tP50\tP99\tMOST\tP99'S RATIO\tNO ANSWER")
	for _, question := range slices.Concat(innocent.Questions, innocent.References) {
		alone, attacked := r.Alone.Times[question], r.Attacked.Times[question]
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\t%.1f\t%d\n", question,
			len(alone), took(alone, 0.5), took(alone, 0.99), len(attacked), took(attacked, 0.5), took(attacked, 0.99), took(attacked, 1),
			r.Ratio(question), r.Attacked.Failed[question])
	}
	fmt.Fprintln(w, "\t\t\t\t\t\t\t\t\t")
	_ = w.Flush()
	fmt.Fprintln(w, "ATTACK\tWHAT\tWHAT CAME OF IT")
	for _, name := range hostile.Names() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", name, hostile.Does(name), counts(r.Attacks[name]))
	}
	_ = w.Flush()
	fmt.Fprintf(out, "\nresident %s before, most %s; address space %s before, most %s\n",
		size(r.Calm.Resident), size(r.Memory.ResidentPeak), size(r.Calm.Virtual), size(r.Memory.VirtualPeak))
	if r.Died == nil {
		fmt.Fprintf(out, "informerd lived, and stopped within %.1f s of SIGTERM\n", r.Stop.Seconds())
	}
	for name, phase := range map[string]innocent.Phase{"alone": r.Alone, "under attack": r.Attacked} {
		for _, f := range phase.Failures {
			fmt.Fprintf(out, "no answer %s: %s, %s: %v\n", name, f.At.Format(time.TimeOnly), f.Question, f.Err)
		}
	}
	for _, slow := range r.Slow() {
		fmt.Fprintln(out, "SLOW", slow)
	}
	for _, wrong := range r.Wrong() {
		fmt.Fprintln(out, "WRONG", wrong)
	}
}

// tell says what went on since the last time.
func (r *run) tell() {
	var line []string
	fresh := r.user.Since()
	for _, question := range innocent.Questions {
		line = append(line, fmt.Sprintf("%s %s/%s", question, took(fresh[question], 0.5), took(fresh[question], 0.99)))
	}
	failed := 0
	for _, n := range r.user.Failed() {
		failed += n
	}
	r.log("resident %s, address space %s; the user's p50/p99: %s; %d not answered", size(r.memory.Resident), size(r.memory.Virtual), strings.Join(line, ", "), failed)
	if r.attackers == nil {
		return
	}
	all := r.attackers.done()
	since := all.Since(r.told)
	r.told = all
	line = nil
	for _, name := range hostile.Names() {
		if len(since[name]) > 0 {
			line = append(line, name+" "+counts(since[name]))
		}
	}
	r.log("attacks: %s; %d times 429", strings.Join(line, ", "), since.Of("429"))
}

// counts are outcomes, how often there was each.
func counts(outcomes map[string]int) string {
	if len(outcomes) == 0 {
		return "nothing"
	}
	var texts []string
	for _, o := range slices.Sorted(maps.Keys(outcomes)) {
		texts = append(texts, fmt.Sprintf("%s: %d", o, outcomes[o]))
	}
	return strings.Join(texts, " ")
}

func took(times []time.Duration, q float64) string {
	if len(times) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fms", innocent.Percentile(times, q).Seconds()*1e3)
}

func size(bytes int64) string { return fmt.Sprintf("%.0f MB", float64(bytes)/(1<<20)) }

package main

// peak is the most memory that any informerd of a run needed, whatever it was
// asked.
type peak struct{ samples []float64 }

// wholeRun is the group of rows about all measurements of a run.
const wholeRun = "all"

// peakLimit is what informerd may need for up to peakPods pods.
const (
	peakLimit = 500e6
	peakPods  = 100_000
)

// note adds an informerd that is about to be stopped.
func (p *peak) note(pid int) error {
	bytes, err := statusBytes(pid, "VmHWM")
	if err == nil {
		p.samples = append(p.samples, bytes)
	}
	return err
}

func (p *peak) row(pods int) Row {
	r := Row{Group: wholeRun, What: "highest peak RSS of all measurements", Unit: unitBytes, Bar: noBar}
	if len(p.samples) > 0 {
		r.Ours = worst("informerd", p.samples)
	}
	if pods <= peakPods {
		r.Bar = atMost(peakLimit)
	}
	return r
}

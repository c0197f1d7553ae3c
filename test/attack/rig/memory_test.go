package rig

import "testing"

func TestParseStatus(t *testing.T) {
	const status = "Name:\tinformerd\nVmPeak:\t 1966080 kB\nVmSize:\t 1900000 kB\nVmLck:\t       0 kB\nVmHWM:\t  102400 kB\nVmRSS:\t   51200 kB\nThreads:\t9\n"
	got, err := parseStatus(status)
	if want := (MemoryUse{Resident: 51200 << 10, ResidentPeak: 102400 << 10, Virtual: 1900000 << 10, VirtualPeak: 1966080 << 10}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "Name:\tzombie\n", "\nVmPeak:\t many kB\nVmSize:\t1 kB\nVmHWM:\t1 kB\nVmRSS:\t1 kB\n"} {
		if got, err := parseStatus(bad); err == nil {
			t.Errorf("%q is %+v", bad, got)
		}
	}
}

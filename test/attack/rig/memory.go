package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// MemoryUse is the memory of a process, in bytes: what it has now, and the most it ever had.
type MemoryUse struct {
	Resident, ResidentPeak, Virtual, VirtualPeak int64
}

// Memory is what informerd has. Linux only.
func (i *Informerd) Memory() (MemoryUse, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", i.process.PID()))
	if err != nil {
		return MemoryUse{}, fmt.Errorf("read memory (this needs Linux): %w", err)
	}
	return parseStatus(string(data))
}

func parseStatus(status string) (MemoryUse, error) {
	var m MemoryUse
	for field, into := range map[string]*int64{"VmRSS:": &m.Resident, "VmHWM:": &m.ResidentPeak, "VmSize:": &m.Virtual, "VmPeak:": &m.VirtualPeak} {
		_, rest, ok := strings.Cut(status, "\n"+field)
		line, _, _ := strings.Cut(rest, "\n")
		kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 10, 64)
		if !ok || err != nil {
			return m, fmt.Errorf("read memory: no %s", field)
		}
		*into = kb << 10
	}
	return m, nil
}

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockDir makes sure that only one devcluster works in dir. The kernel drops
// the lock when the process ends, however it ends.
func lockDir(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		by := ""
		if info, err := ReadInfo(dir); err == nil && info.PID != 0 {
			by = fmt.Sprintf(" (pid %d)", info.PID)
		}
		return nil, fmt.Errorf("%s is in use by another devcluster%s", dir, by)
	}
	return file, nil
}

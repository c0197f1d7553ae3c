package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// LongestStall is how long a slow disk may write nothing at a time.
const LongestStall = 1600 * time.Millisecond

// diskSize is enough for a snapshot and soon full.
const diskSize = 64 << 20

// makeDisk mounts a small file system, where that is allowed: one in a file, which can
// be slow, else one in memory.
func (r *Rig) makeDisk() {
	dir := filepath.Join(r.Dir, "disk")
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	has := []string{"disk", "slow disk"}
	if err := r.mountFile(dir); err != nil {
		r.Log("no slow disk: %v", err)
		if err := run("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", diskSize), "tmpfs", dir); err != nil {
			r.Log("no disk that can be full: %v", err)
			return
		}
		has = has[:1]
	}
	var err error
	if r.unmount, err = caretaker(dir); err != nil {
		r.Log("no disk that can be full: %v", err)
		_ = run("umount", "-l", dir)
		return
	}
	r.Disk = dir
	r.Has = append(r.Has, has...)
}

// caretaker starts a shell that unmounts dir when it is told to, or when the soak is
// killed: then it waits for the longest stall. It has a process group of its own, so
// that what ends the soak from a terminal does not end it.
func caretaker(dir string) (unmount func(), err error) {
	cmd := exec.Command("sh", "-c", fmt.Sprintf("read now || sleep %.0f; fsfreeze -u '%s' 2>/dev/null; umount -l '%s'", (LongestStall+time.Second).Seconds(), dir, dir))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	told, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_, _ = told.Write([]byte("now\n")) // it has ended if that fails
		_ = cmd.Wait()
	}, nil
}

func (r *Rig) mountFile(dir string) error {
	image := filepath.Join(r.Dir, "disk.img")
	f, err := os.Create(image)
	if err != nil {
		return err
	}
	err = f.Truncate(diskSize)
	if cerr := f.Close(); err != nil || cerr != nil {
		return fmt.Errorf("make %s: %w", image, err)
	}
	if err := run("mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", image); err != nil {
		return err
	}
	if err := run("mount", "-o", "loop", image, dir); err != nil {
		return err
	}
	if err := run("sh", "-c", stall(dir, 0)); err != nil {
		_ = run("umount", "-l", dir)
		return err
	}
	return nil
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %.200s", name, err, out)
	}
	return nil
}

// stall is a shell's command for a file system that does not write for a while. The
// shell ends what it began also when the soak is killed meanwhile.
func stall(dir string, d time.Duration) string {
	return fmt.Sprintf("fsfreeze -f '%s' && { sleep %.3f; fsfreeze -u '%s'; }", dir, d.Seconds(), dir)
}

// SlowDisk makes every write to the disk wait, most of the time and for a LongestStall
// at most, until ctx ends, and returns when it is as before.
func (r *Rig) SlowDisk(ctx context.Context, stalls func() time.Duration) error {
	for ctx.Err() == nil {
		if err := run("sh", "-c", stall(r.Disk, min(stalls(), LongestStall))); err != nil {
			return err
		}
		time.Sleep(30 * time.Millisecond) // what waited goes on
	}
	return nil
}

// removeDisk unmounts it, thawed.
func (r *Rig) removeDisk() {
	if r.Disk != "" {
		r.unmount()
		r.Disk = ""
	}
}

// thaw undoes what a SlowDisk that was cut off may have left.
func (r *Rig) thaw() {
	if r.Can("slow disk") {
		_ = run("fsfreeze", "-u", r.Disk) // an error says that it is not frozen
	}
}

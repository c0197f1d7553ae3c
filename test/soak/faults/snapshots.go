package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/soak/checker"
	"github.com/informerd/informerd/test/soak/history"
	"github.com/informerd/informerd/test/soak/rig"
)

// mended is how long after a fault damaged the snapshot there may still be damage in it.
// What cannot be read is left out, and takes its place again when its resource was listed:
// other faults may keep the API server, or informerd, away for so long.
const mended = 5 * time.Minute

// checkSnapshot looks at what an informerd that does not run has saved: the file
// must be sound, and a process that starts from a copy of it, without an API
// server, must serve what etcd had. So it must where a fault damaged the file.
func (e *Env) checkSnapshot(ctx context.Context, i *rig.Informerd) {
	e.loading.Lock()
	defer e.loading.Unlock()
	e.loads++
	reader := fmt.Sprintf("snapshot %d of %s", e.loads, i.Name)
	dir := filepath.Join(e.Rig.Dir, fmt.Sprintf("loaded-%d", e.loads))
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "copy.db")
	if err := copyFile(i.Snapshot, file); errors.Is(err, fs.ErrNotExist) {
		return
	} else if err != nil {
		e.Log("trouble: copy the snapshot: %v", err)
		return
	}
	if out, err := exec.CommandContext(ctx, i.Program, "snapshot", "verify", file).CombinedOutput(); err != nil {
		if i != e.Rig.First || time.Since(e.damaged) > mended {
			e.Checker.Report(time.Now(), "reply", reader, "snapshot verify: %v: %.500s", err, out)
			return
		}
		e.Log("%s is still damaged: %.500s", reader, out)
	} else if i == e.Rig.First {
		e.damaged = time.Time{}
	}
	loaded, err := e.Rig.Loaded(file)
	if err != nil {
		e.Checker.Report(time.Now(), "reply", reader, "start from it: %v", err)
		return
	}
	defer loaded.Kill()
	for _, r := range e.Stable {
		e.checkLoaded(ctx, loaded, r, reader)
	}
}

func (e *Env) checkLoaded(ctx context.Context, i *rig.Informerd, r history.Resource, reader string) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	err := harness.Poll(5*time.Second, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, i.URL+"/v1/resources/"+r.Name()+"/objects", nil)
		if err != nil {
			return err
		}
		f := checker.Freshness{Instance: reader, Sent: time.Now()}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%d: %.200s", resp.StatusCode, body)
		}
		f.Received, f.State = time.Now(), resp.Header.Get("Informerd-State")
		if seconds, err := strconv.ParseFloat(resp.Header.Get("Informerd-Age"), 64); err == nil {
			f.Age = time.Duration(seconds * float64(time.Second))
		} else {
			f.State = ""
		}
		return e.reportLoaded(r, reader, f, body)
	})
	if err != nil {
		// A resource may not have been saved yet: it is not served then.
		e.Log("snapshot without %s: %v", r.Name(), err)
	}
}

func (e *Env) reportLoaded(r history.Resource, reader string, f checker.Freshness, body []byte) error {
	var l struct {
		Metadata struct{ ResourceVersion string }
		Items    []json.RawMessage
	}
	if err := json.Unmarshal(body, &l); err != nil {
		return err
	}
	version, err := strconv.ParseInt(l.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	objects := map[string]history.Object{}
	for _, item := range l.Items {
		key, o, err := history.Read(r, item)
		if err != nil {
			return err
		}
		objects[key] = o
	}
	e.Checker.Answer(checker.Answer{Freshness: f, Reader: reader, Resource: r.Name(), Version: version, Objects: objects})
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// damaged kills the first informerd and damages its snapshot while it is down.
func damaged(damage func(*rand.Rand, []byte) []byte) begin {
	return func(_ context.Context, e *Env, random *rand.Rand) (func(context.Context) error, error) {
		i := e.Rig.First
		i.Kill()
		e.loading.Lock()
		defer e.loading.Unlock()
		e.damaged = time.Now()
		data, err := os.ReadFile(i.Snapshot)
		if err == nil && len(data) > 0 {
			if data = damage(random, data); data == nil {
				err = os.Remove(i.Snapshot)
			} else {
				err = os.WriteFile(i.Snapshot, data, 0o600)
			}
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return func(context.Context) error { return i.Start() }, err
	}
}

const page = 4096

func somePage(random *rand.Rand, data []byte) []byte {
	n := random.IntN(max(len(data)/page, 1))
	return data[n*page : min((n+1)*page, len(data))]
}

// ballast fills a file system.
const ballast = "ballast"

func (e *Env) fill() error {
	f, err := os.Create(filepath.Join(e.Rig.Disk, ballast))
	if err != nil {
		return err
	}
	zeros := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(zeros)
	}
	_ = f.Close()
	return nil // it is full
}

func (e *Env) free() error { return os.Remove(filepath.Join(e.Rig.Disk, ballast)) }

func diskFull(_ context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
	return func(context.Context) error { return e.free() }, e.fill()
}

// diskFullKill kills informerd on a full disk: nothing it had saved before may be
// lost, and what it could not save must show in its age.
func diskFullKill(ctx context.Context, e *Env, random *rand.Rand) (func(context.Context) error, error) {
	if err := e.fill(); err != nil {
		return nil, err
	}
	wait(ctx, 5*time.Second+time.Duration(random.IntN(10))*time.Second)
	e.Rig.First.Kill()
	e.checkSnapshot(ctx, e.Rig.First)
	return func(context.Context) error { return errors.Join(e.free(), e.Rig.First.Start()) }, nil
}

// diskSlow lets the disk write now and then only; killed says that informerd is killed
// meanwhile.
func diskSlow(killed bool) begin {
	return func(ctx context.Context, e *Env, random *rand.Rand) (func(context.Context) error, error) {
		slow, fast := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			ended <- e.Rig.SlowDisk(slow, func() time.Duration { return 100*time.Millisecond + time.Duration(random.IntN(1500))*time.Millisecond })
		}()
		return func(ctx context.Context) error {
			if killed {
				e.Rig.First.Kill() // it ends when its write does
			}
			fast()
			err := <-ended
			if !killed {
				return err
			}
			e.checkSnapshot(ctx, e.Rig.First)
			return errors.Join(err, e.Rig.First.Start())
		}, nil
	}
}

func diskReadOnly(_ context.Context, e *Env, _ *rand.Rand) (func(context.Context) error, error) {
	// A file that is open for writing keeps a file system writable: informerd is
	// started on one that is not.
	remount := func(how string) error {
		out, err := exec.Command("mount", "-o", "remount,"+how, e.Rig.Disk).CombinedOutput()
		if err != nil {
			return fmt.Errorf("remount %s: %w: %s", how, err, out)
		}
		return nil
	}
	i := e.Rig.First
	i.Kill()
	if err := remount("ro"); err != nil {
		return func(context.Context) error { return i.Start() }, err
	}
	return func(context.Context) error {
		i.Kill()
		return errors.Join(remount("rw"), i.Start())
	}, i.Start()
}

func snapshotKinds() []Kind {
	one, seconds := []string{first}, 3*time.Second
	return []Kind{
		{Name: "snapshot-truncated", Does: "SIGKILL, and the file ends anywhere", Parts: one, Most: seconds, Lists: true,
			Begin: damaged(func(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] })},
		{Name: "snapshot-torn", Does: "SIGKILL, and half a page is not there", Parts: one, Most: seconds, Lists: true,
			Begin: damaged(func(r *rand.Rand, b []byte) []byte { p := somePage(r, b); clear(p[len(p)/2:]); return b })},
		{Name: "snapshot-flipped", Does: "SIGKILL, and one bit is another", Parts: one, Most: seconds, Lists: true,
			Begin: damaged(func(r *rand.Rand, b []byte) []byte { b[r.IntN(len(b))] ^= 1 << r.IntN(8); return b })},
		{Name: "snapshot-lost", Does: "SIGKILL, and the file is gone", Parts: one, Most: seconds, Lists: true,
			Begin: damaged(func(*rand.Rand, []byte) []byte { return nil })},
		{Name: "disk-full", Does: "the snapshot's disk is full", Parts: one, Needs: "disk", Least: 2 * time.Second, Most: 40 * time.Second, Begin: diskFull},
		{Name: "disk-full-kill", Does: "the same, then SIGKILL", Parts: one, Needs: "disk", Most: seconds, Lists: true, Begin: diskFullKill},
		{Name: "disk-slow", Does: "the snapshot's disk stands still most of the time", Parts: one, Needs: "slow disk", Least: 5 * time.Second, Most: 60 * time.Second, Begin: diskSlow(false)},
		{Name: "disk-slow-kill", Does: "the same, then SIGKILL", Parts: one, Needs: "slow disk", Least: 5 * time.Second, Most: 20 * time.Second, Begin: diskSlow(true)},
		{Name: "disk-read-only", Does: "started with the snapshot on a read-only disk", Parts: one, Needs: "disk", Least: 5 * time.Second, Most: 30 * time.Second, Lists: true, Begin: diskReadOnly},
	}
}

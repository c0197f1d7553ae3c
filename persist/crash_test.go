//go:build unix

package persist

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

// childFile, when set, is the file that a test started as a process of its own
// works on.
const childFile = "INFORMERD_TEST_CHILD_FILE"

// child runs the named test again in another process.
func child(test, path string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(os.Environ(), childFile+"="+path)
	return cmd
}

// TestKill kills a process that commits without pause, at random moments. What
// is found afterwards is one commit, whole, and none that was acknowledged is
// lost.
func TestKill(t *testing.T) {
	if path := os.Getenv(childFile); path != "" {
		commitForEver(t, path)
	}
	killOften(t, "TestKill", wholeCommit)
}

// TestKillNotes kills a process that notes changes of ledgers while it commits. Each note is
// found afterwards, whole, and none that was acknowledged is lost.
func TestKillNotes(t *testing.T) {
	if path := os.Getenv(childFile); path != "" {
		noteForEver(t, path)
	}
	killOften(t, "TestKillNotes", func(t *testing.T, path string) int {
		db := open(t, Options{Path: path})
		defer closeDB(t, db)
		found, _ := strconv.Atoi(ledger(t, db, "small")["last"])
		checkNumberedLedgers(t, db, found)
		return found
	})
}

// killOften kills what a test runs as its child, and looks each time for the last number that
// is found afterwards.
func killOften(t *testing.T, test string, last func(*testing.T, string) int) {
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	path := newPath(t)
	found := 0
	for i := range rounds {
		acknowledged := max(found, killOne(t, test, path, time.Duration(rand.IntN(120))*time.Millisecond))
		if found = last(t, path); found < acknowledged || found > acknowledged+1 {
			t.Fatalf("round %d: %d was acknowledged, %d found", i, acknowledged, found)
		}
	}
	t.Logf("%d are found after %d kills", found, rounds)
}

// noteForEver is the child: each note says its number, beside commits of other things.
func noteForEver(t *testing.T, path string) {
	db, err := Open(Options{Path: path, NoSync: true, stageBytes: 20_000, compactBytes: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(ledger(t, db, "small")["last"])
	go func() {
		for {
			if err := db.Commit(numbered(1), nil); err != nil {
				panic(err)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	for {
		n++
		if err := db.Note(numberedLedgers(n)); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("committed %d\n", n)
	}
}

// killOne returns the last commit that the child acknowledged.
func killOne(t *testing.T, test, path string, after time.Duration) (acknowledged int) {
	t.Helper()
	cmd := child(test, path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var timer *time.Timer
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		n, ok := strings.CutPrefix(lines.Text(), "committed ")
		if !ok {
			continue
		}
		if acknowledged, err = strconv.Atoi(n); err != nil {
			break // cut off by the kill
		}
		if timer == nil { // it runs: let it, for a while
			timer = time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
	}
	_ = cmd.Wait()
	if timer == nil {
		t.Fatal("the child committed nothing")
	}
	timer.Stop()
	return acknowledged
}

// commitForEver is the child: each commit says its number everywhere.
func commitForEver(t *testing.T, path string) {
	db, err := Open(Options{Path: path, NoSync: true, stageBytes: 20_000, compactBytes: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if saved, err := db.Load(pods, func(cache.Record) error { return nil }); err == nil {
		n, _ = strconv.Atoi(saved.ResourceVersions[""])
	}
	for {
		n++
		if err := db.Commit(numbered(n), numberedLedgers(n)); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("committed %d\n", n)
	}
}

// numbered is commit n: as many objects as n says, all of version n, small or
// large, with or without Reset.
func numbered(n int) []cache.Batch {
	var batches []cache.Batch
	for i, r := range three {
		b := cache.Batch{Saved: savedOf(r, strconv.Itoa(n)), Reset: n == 1 || (n+i)%4 == 0}
		// A dictionary of its own in place of the one before.
		b.Saved.Dictionaries = map[uint32][]byte{uint32(n): []byte(strconv.Itoa(n))}
		b.Retired = []uint32{uint32(n - 1)}
		for j := range 40 {
			rec := record("ns", fmt.Sprint(j), strconv.Itoa(n))
			if j >= objectsOf(n) {
				b.Delete = append(b.Delete, rec.Key)
				continue
			}
			rec.Data, rec.Dictionary = make([]byte, 500+(n*j)%1500), uint32(n)
			b.Put = append(b.Put, rec)
		}
		batches = append(batches, b)
	}
	return batches
}

// numberedLedgers is what commit n changes of two ledgers: a key of each commit, of which
// the last ten stay, and one that is always of the last.
func numberedLedgers(n int) (all []cache.LedgerChange) {
	entry := func(key string, n int) cache.LedgerEntry {
		return cache.LedgerEntry{Key: []byte(key), Value: make([]byte, n%700)}
	}
	for i, name := range []string{"small", "large"} {
		c := cache.LedgerChange{Name: name, Reset: (n+i)%7 == 0}
		first := n
		if c.Reset {
			first = max(1, n-9)
		}
		for j := first; j <= n; j++ {
			c.Put = append(c.Put, entry(strconv.Itoa(j), j))
		}
		c.Put = append(c.Put, cache.LedgerEntry{Key: []byte("last"), Value: []byte(strconv.Itoa(n))})
		c.Delete = [][]byte{[]byte(strconv.Itoa(n - 10))}
		all = append(all, c)
	}
	return all
}

// checkNumberedLedgers: the ledgers are those of commit n.
func checkNumberedLedgers(t *testing.T, db *DB, n int) {
	t.Helper()
	for _, name := range []string{"small", "large"} {
		got := ledger(t, db, name)
		want := map[string]string{"last": strconv.Itoa(n)}
		for j := max(1, n-9); j <= n; j++ {
			want[strconv.Itoa(j)] = string(make([]byte, j%700))
		}
		same(t, "ledger "+name, got, want)
	}
}

func objectsOf(n int) int { return 20 + n%20 }

// wholeCommit returns the number of the commit the file holds.
func wholeCommit(t *testing.T, path string) int {
	t.Helper()
	db := open(t, Options{Path: path})
	defer db.Close()
	found := -1
	for _, r := range three {
		s := load(t, db, r)
		n, err := strconv.Atoi(s.Saved.ResourceVersions[""])
		if err != nil || found >= 0 && n != found {
			t.Fatalf("%s is of commit %d, another of %d, %v", r, n, found, err)
		}
		found = n
		if len(s.Records) != objectsOf(n) {
			t.Fatalf("%s: %d objects in commit %d, want %d", r, len(s.Records), n, objectsOf(n))
		}
		if d := s.Saved.Dictionaries; len(d) != 1 || string(d[uint32(n)]) != strconv.Itoa(n) {
			t.Fatalf("%s: dictionaries %v in commit %d", r, d, n)
		}
		for _, rec := range s.Records {
			if rec.ResourceVersion != strconv.Itoa(n) || rec.Dictionary != uint32(n) {
				t.Fatalf("%s: %s is of commit %s, not %d", r, rec.Key, rec.ResourceVersion, n)
			}
		}
	}
	checkNumberedLedgers(t, db, found)
	return found
}

// TestDiskFull commits to a file that may not grow, and again once it may.
func TestDiskFull(t *testing.T) {
	path := os.Getenv(childFile)
	if path == "" {
		out, err := child("TestDiskFull", newPath(t)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	db := open(t, Options{Path: path})
	commit(t, db, threeBatch(20, "1")...)
	before := loadThree(t, db)
	limitFiles(t, db.Stats().FileBytes)
	for range 3 {
		if err := db.Commit(threeBatch(3000, "2"), nil); err == nil {
			t.Fatal("Commit() worked, with no room for it")
		}
		if !equal(loadThree(t, db), before) {
			t.Fatal("a failed commit changed something")
		}
		// There is room for a little.
		commit(t, db, cache.Batch{Saved: savedOf(pods, "1"), Put: before[pods].Records[:1]})
	}
	limitFiles(t, 1<<40)
	commit(t, db, threeBatch(3000, "2")...)
	if got := load(t, db, pods); len(got.Records) != 3000 {
		t.Fatalf("%d records", len(got.Records))
	}
}

// limitFiles sets how large files may become.
func limitFiles(t *testing.T, size int64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	limit.Cur = min(uint64(size), limit.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
}

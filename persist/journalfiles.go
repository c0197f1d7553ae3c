package persist

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// JournalSuffix, and the number of a file of the journal, are added to the name of the snapshot
// file.
const JournalSuffix = ".journal-"

func journalName(path string, number uint64) string {
	return path + JournalSuffix + strconv.FormatUint(number, 10)
}

// journalNumbers are those of the files that lie beside a snapshot file, in order.
func journalNumbers(path string) ([]uint64, error) {
	folder, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var numbers []uint64
	for _, entry := range folder {
		rest, ok := strings.CutPrefix(entry.Name(), filepath.Base(path)+JournalSuffix)
		n, bad := strconv.ParseUint(rest, 10, 64)
		if ok && bad == nil && rest == strconv.FormatUint(n, 10) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

// removeJournal removes all files of journals beside a snapshot file.
func removeJournal(path string) error {
	numbers, err := journalNumbers(path)
	for _, n := range numbers {
		err = errors.Join(err, os.Remove(journalName(path, n)))
	}
	return err
}

// moveWithJournal moves a snapshot file, after its journal.
func moveWithJournal(from, to string) error {
	if err := moveJournal(from, to); err != nil {
		return err
	}
	return rename(from, to)
}

// moveJournal takes the journal of a snapshot file along to where that is moved. What lies there
// of other journals is not removed: it may be what a crash left half moved.
func moveJournal(from, to string) error {
	numbers, err := journalNumbers(from)
	for _, n := range numbers {
		if err == nil {
			err = rename(journalName(from, n), journalName(to, n))
		}
	}
	return err
}

// readRegular reads a file that is one, and not the link to another.
func readRegular(name string) ([]byte, error) {
	info, err := os.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	}
	return os.ReadFile(name)
}

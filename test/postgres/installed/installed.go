// Package installed finds the PostgreSQL that is on the machine, and runs its programs. It knows
// no tests, so that what is measured can use it, too.
package installed

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Folder is the variable that says where PostgreSQL's programs are.
const Folder = "INFORMERD_POSTGRES"

// ErrNone says that there is no PostgreSQL.
var ErrNone = errors.New("there is no PostgreSQL")

// Programs are those of one PostgreSQL.
type Programs struct {
	bin string
	as  *syscall.Credential // nil: as who runs this
}

// Find finds the programs where Folder says, otherwise the newest that Debian has installed,
// otherwise those of PATH. The error is ErrNone if there are none.
func Find() (*Programs, error) {
	var folders []string
	if dir := os.Getenv(Folder); dir != "" {
		folders = append(folders, dir)
	} else {
		packaged, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
		slices.Reverse(packaged) // the newest first
		folders = append(folders, packaged...)
		if path, err := exec.LookPath("initdb"); err == nil {
			folders = append(folders, filepath.Dir(path))
		}
	}
	for _, dir := range folders {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			as, err := credential()
			return &Programs{bin: dir, as: as}, err
		}
	}
	return nil, ErrNone
}

// credential is of whom they run as: PostgreSQL does not run as root.
func credential() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // as who runs this
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, uerr := strconv.Atoi(u.Uid)
	gid, gerr := strconv.Atoi(u.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(uerr, gerr)
}

// Give makes a folder belong to who runs them.
func (p *Programs) Give(dir string) error {
	if p.as == nil {
		return nil
	}
	return os.Chown(dir, int(p.as.Uid), int(p.as.Gid))
}

// Command is one of the programs, which begins in the folder dir.
func (p *Programs) Command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.Dir = dir
	if p.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	}
	return cmd
}

// InitDB makes a database cluster in the folder data, whose user postgres needs no password.
func (p *Programs) InitDB(dir, data string) ([]byte, error) {
	return p.Command(dir, "initdb", "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync").CombinedOutput()
}

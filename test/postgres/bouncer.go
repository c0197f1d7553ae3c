package postgres

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/informerd/informerd/test/child"
)

// Bouncer starts a PgBouncer before the server, in a pool_mode, and returns the URL of the
// same database by way of it. Without PgBouncer on the machine the test is skipped.
func (s *Server) Bouncer(mode string) string {
	s.tb.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		s.tb.Skip("there is no PgBouncer")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.tb.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	name := filepath.Join(s.dir, fmt.Sprintf("bouncer.%d", port))
	// With auth_type any the server is connected to as whom the database says.
	config := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n"+
		"unix_socket_dir =\nauth_type = any\npool_mode = %s\ndefault_pool_size = 3\n", s.port, port, mode)
	if err := os.WriteFile(name+".ini", []byte(config), 0o644); err != nil { //nolint:gosec // it is read as another user
		s.tb.Fatal(err)
	}
	cmd := s.command("postgres", name+".ini")
	cmd.Path, cmd.Args[0] = program, program
	p, err := child.Start("pgbouncer", cmd, name+".log", syscall.SIGTERM)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(p.Kill)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(deadline) || !p.Running() {
			log, _ := os.ReadFile(name + ".log")
			s.tb.Fatalf("pgbouncer does not answer:\n%s", log)
		}
	}
	return "postgres://postgres@" + address + "/postgres?sslmode=disable"
}

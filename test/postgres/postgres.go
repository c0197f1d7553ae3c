// Package postgres runs PostgreSQL for tests: one server with a data folder of its own, on
// a free port of loopback, which can be stopped, killed, frozen and started again.
package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/informerd/informerd/test/child"
	"github.com/informerd/informerd/test/postgres/installed"
)

// Server is one PostgreSQL.
type Server struct {
	tb       testing.TB
	dir      string
	programs *installed.Programs
	port     int
	process  *child.Process
	runs     int
}

// Start starts a server, which is stopped at the end of the test. Without PostgreSQL on
// the machine the test is skipped, unless INFORMERD_POSTGRES says where it is.
func Start(tb testing.TB) *Server {
	tb.Helper()
	return start(tb, func(string) (release func() error) { return func() error { return nil } })
}

// start has prepare do what it wants with the empty folder of the server; release ends that
// when the server does not run any more, before the folder goes.
func start(tb testing.TB, prepare func(dir string) (release func() error)) *Server {
	tb.Helper()
	programs, err := installed.Find()
	if errors.Is(err, installed.ErrNone) && os.Getenv(installed.Folder) == "" {
		tb.Skipf("%v: make postgres installs it", err)
	} else if err != nil {
		tb.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "informerd-postgres-")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{tb: tb, dir: dir, programs: programs}
	release := prepare(dir)
	tb.Cleanup(func() { s.cleanup(release) })
	if err := programs.Give(dir); err != nil {
		tb.Fatal(err)
	}
	out, err := programs.InitDB(dir, s.data())
	if err != nil {
		tb.Fatalf("initdb: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
	s.Up()
	return s
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// URL leads to the database postgres.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	return s.programs.Command(s.dir, name, args...)
}

// Up starts the server, and returns when it answers.
func (s *Server) Up() {
	s.tb.Helper()
	s.runs++
	cmd := s.command("postgres", "-D", s.data(), "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "fsync=off")
	var err error
	s.process, err = child.Start(fmt.Sprintf("postgres.%d", s.runs), cmd, filepath.Join(s.dir, fmt.Sprintf("log.%d", s.runs)), syscall.SIGQUIT)
	if err != nil {
		s.tb.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		err := s.Try("SELECT 1")
		if err == nil {
			return
		}
		if time.Now().After(deadline) || !s.process.Running() {
			log, _ := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("log.%d", s.runs)))
			s.tb.Fatalf("postgres does not answer: %v\n%s", err, log)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Try runs SQL, which may fail.
func (s *Server) Try(query string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, query)
	return errors.Join(err, c.Close(ctx))
}

// Exec runs SQL.
func (s *Server) Exec(query string) {
	s.tb.Helper()
	if err := s.Try(query); err != nil {
		s.tb.Fatalf("%s: %v", query, err)
	}
}

// Let puts a line before those of pg_hba.conf, which say who is let in how.
func (s *Server) Let(line string) {
	s.tb.Helper()
	path := filepath.Join(s.data(), "pg_hba.conf")
	before, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append([]byte(line+"\n"), before...), 0o600)
	}
	if err != nil {
		s.tb.Fatal(err)
	}
	s.Exec("SELECT pg_reload_conf()")
	time.Sleep(200 * time.Millisecond) // it is read by and by
}

// Holds reports whether the files of the tables hold a text; its log, which keeps what was
// written for a while, is not looked at.
func (s *Server) Holds(text string) bool {
	s.tb.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join(s.data(), "base"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // files of tables that were written anew go
		}
		data, err := os.ReadFile(path)
		found = found || err == nil && bytes.Contains(data, []byte(text))
		return nil
	})
	if err != nil {
		s.tb.Fatal(err)
	}
	return found
}

// Running reports whether it runs, or does so again.
func (s *Server) Running() bool { return s.process.Running() }

// Down stops the server, cutting connections off.
func (s *Server) Down() { s.end(syscall.SIGINT) }

// Kill ends it as a crash does: all its processes at once.
func (s *Server) Kill() { s.end(syscall.SIGQUIT) }

func (s *Server) end(sig syscall.Signal) {
	s.tb.Helper()
	if err := s.process.Signal(sig); err != nil {
		s.tb.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); s.process.Running(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.process.Kill()
			s.tb.Fatal("postgres does not end")
		}
	}
}

// Freeze stops all its processes until Thaw: connections stay, and nothing answers.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw ends Freeze.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

// signal signals the server and its children, which are in sessions of their own.
func (s *Server) signal(sig syscall.Signal) {
	s.tb.Helper()
	for _, pid := range append(children(s.process.PID()), s.process.PID()) {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			s.tb.Fatal(err)
		}
	}
}

// children are the processes whose parent is pid.
func children(pid int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

func (s *Server) cleanup(release func() error) {
	if s.process != nil && s.process.Running() {
		s.signal(syscall.SIGCONT)
		s.Down()
	}
	if err := errors.Join(release(), os.RemoveAll(s.dir)); err != nil {
		s.tb.Error(err)
	}
}

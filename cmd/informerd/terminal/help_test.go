package terminal

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelp: each command has examples, which are lines that it takes, and a section in
// docs/cli.md, which names none of its flags wrongly.
func TestHelp(t *testing.T) {
	document, err := os.ReadFile("../../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	root := &cobra.Command{Use: "informerd"}
	Commands(root)
	known := map[string]bool{}
	for _, cmd := range root.Commands() {
		if !strings.Contains(string(document), "\n## "+cmd.Name()+"\n") {
			t.Errorf("docs/cli.md has no section about %s", cmd.Name())
		}
		if cmd.Example == "" || cmd.Long == "" {
			t.Errorf("%s is not explained", cmd.Name())
		}
		for line := range strings.Lines(cmd.Example) {
			checkLine(t, root, strings.TrimSpace(line))
		}
		for _, c := range append(cmd.Commands(), cmd) {
			for _, flag := range flagName.FindAllString(c.Flags().FlagUsages(), -1) {
				known[flag] = true
			}
		}
	}
	for _, flag := range flagName.FindAllString(string(document), -1) {
		if !known[flag] && flag != "--help" {
			t.Errorf("docs/cli.md names the flag %s, which no command has", flag)
		}
	}
}

var flagName = regexp.MustCompile(`--[a-z][a-z-]+`)

// checkLine parses a line as the shell and the command would, without asking anybody.
func checkLine(t *testing.T, root *cobra.Command, line string) {
	t.Helper()
	words := splitWords(line)
	if len(words) < 2 || words[0] != "informerd" {
		t.Errorf("%q is no command", line)
		return
	}
	cmd, rest, err := root.Find(words[1:])
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil {
		t.Errorf("%q: %v", line, err)
	}
}

// splitWords is what a shell does with single quotes.
func splitWords(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// TestNames: kubectl is told how the plugin is called.
func TestNames(t *testing.T) {
	for program, want := range map[string]string{
		"informerd": "informerd", "/usr/bin/informerd": "informerd", "./kubectl-informerd": "kubectl informerd", "kubectl-informerd.exe": "kubectl informerd", "": "informerd",
	} {
		if got := CalledAs(program); got != want {
			t.Errorf("CalledAs(%q) = %q, want %q", program, got, want)
		}
	}
}

// TestServerOfEnvironment: INFORMERD counts unless a flag does.
func TestServerOfEnvironment(t *testing.T) {
	w := newWorld(t)
	t.Setenv(serverEnv, w.url)
	if got := runCommand(t.Context(), "get", "nodes", "-o", "name"); got.out != "node/n1\n" {
		t.Errorf("%+v", got)
	}
	got := runCommand(t.Context(), "get", "nodes", "--server", "http://127.0.0.1:1")
	if got.code != ExitNoAnswer || !strings.Contains(got.err, "http://127.0.0.1:1 (--server)") {
		t.Errorf("%+v", got)
	}
}

// TestColours: of a table are those of its cells, and change no width.
func TestColours(t *testing.T) {
	for cell, want := range map[[2]string]string{
		{"STATUS", "Running"}: green, {"STATUS", "Ready,SchedulingDisabled"}: green, {"STATUS", "CrashLoopBackOff"}: red,
		{"READY", "0/2"}: red, {"READY", "1/2"}: yellow, {"READY", "2/2"}: plain, {"NAME", "Running"}: plain, {"EVENT", "DELETED"}: red,
	} {
		if got := styleOf(cell[0], cell[1]); got != want {
			t.Errorf("styleOf%q = %q, want %q", cell, got, want)
		}
	}
	if got := paint("x", red); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("%q", got)
	}
}

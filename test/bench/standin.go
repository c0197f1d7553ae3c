package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/informerd/informerd/test/standin"
)

// standInCommand is the hidden subcommand under which this program serves pods in the place of
// an API server. It writes a reply with its address, and ends with its stdin.
const standInCommand = "stand-in"

// standInPods is from how many pods on there is no room for a real API server beside what is
// measured.
const standInPods = 200_000

// runStandIn is the side of that process. It returns the exit code.
func runStandIn(args []string, in io.Reader, out io.Writer) int {
	replies := json.NewEncoder(out)
	err := serveStandIn(args, in, replies)
	if err == nil {
		return 0
	}
	_ = replies.Encode(reply{Error: err.Error()})
	return 1
}

func serveStandIn(args []string, in io.Reader, replies *json.Encoder) error {
	if len(args) != 1 {
		return fmt.Errorf("how many pods? %q", args)
	}
	pods, err := strconv.Atoi(args[0])
	if err != nil || pods < 1 {
		return fmt.Errorf("bad number of pods %q", args[0])
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: standin.New(pods)}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	if err := replies.Encode(reply{Address: "http://" + l.Addr().String()}); err != nil {
		return err
	}
	orders := bufio.NewScanner(in)
	if orders.Scan() {
		return fmt.Errorf("no such order: %q", orders.Text())
	}
	return orders.Err()
}

// startStandIn starts it, and writes a kubeconfig for it into dir.
func startStandIn(ctx context.Context, dir string, pods int) (p *peerProcess, kubeconfig string, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	if p, err = startPeerProcess(ctx, "stand-in", exec.Command(program, standInCommand, strconv.Itoa(pods))); err != nil {
		return nil, "", err
	}
	kubeconfig = filepath.Join(dir, "stand-in.kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, standInKubeconfig, p.first.Address), 0o600); err != nil {
		p.kill()
		return nil, "", err
	}
	return p, kubeconfig, nil
}

const standInKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: stand-in, cluster: {server: %q}}]
users: [{name: nobody, user: {}}]
contexts: [{name: stand-in, context: {cluster: stand-in, user: nobody}}]
current-context: stand-in
`

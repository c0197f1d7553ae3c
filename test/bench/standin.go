package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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

// standInMember is one of the clusters of that process.
type standInMember struct {
	*standin.Server
	*door
	http *http.Server
}

func newStandInMember(k, pods int) (*standInMember, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &standInMember{Server: standin.NewOf(k, pods), door: newDoor(l)}
	m.http = &http.Server{Handler: m.Server}
	go func() { _ = m.http.Serve(m.door) }()
	return m, nil
}

// serveStandIn serves so many pods of one cluster, or of each of several, and does what it is
// ordered: hang K, flap K and calm K are what becomes of a cluster, and churn N has so many
// pods a second change, of whatever cluster, until another such order; churn 0 has none. forget N
// has each cluster forget its history, and so many of its pods change without anybody being told.
func serveStandIn(args []string, in io.Reader, replies *json.Encoder) error {
	pods, clusters, err := parseStandIn(args)
	if err != nil {
		return err
	}
	var first reply
	var members []*standInMember
	for k := range clusters {
		m, err := newStandInMember(k, pods)
		if err != nil {
			return err
		}
		defer m.http.Close()
		members = append(members, m)
		first.Addresses = append(first.Addresses, "http://"+m.Addr().String())
	}
	if first.Address = first.Addresses[0]; clusters == 1 {
		first.Addresses = nil
	}
	if err := replies.Encode(first); err != nil {
		return err
	}
	churn := &standInChurn{members: members}
	defer churn.stop()
	orders := bufio.NewScanner(in)
	for orders.Scan() {
		if err := obeyStandIn(members, orders.Text(), churn); err != nil {
			return err
		}
		if err := replies.Encode(reply{}); err != nil {
			return err
		}
	}
	return orders.Err()
}

func parseStandIn(args []string) (pods, clusters int, err error) {
	numbers := []int{0, 1}
	if len(args) < 1 || len(args) > len(numbers) {
		return 0, 0, fmt.Errorf("how many pods, of how many clusters each? %q", args)
	}
	for n, text := range args {
		if numbers[n], err = strconv.Atoi(text); err != nil || numbers[n] < 1 {
			return 0, 0, fmt.Errorf("bad number %q", text)
		}
	}
	return numbers[0], numbers[1], nil
}

func obeyStandIn(members []*standInMember, order string, churn *standInChurn) error {
	verb, text, _ := strings.Cut(order, " ")
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || n < 0 || verb != "churn" && verb != "forget" && n >= len(members):
		return fmt.Errorf("no such order: %q", order)
	case verb == "hang":
		members[n].hang()
	case verb == "flap":
		members[n].flap()
	case verb == "calm":
		members[n].beCalm()
	case verb == "forget":
		for _, m := range members {
			m.Forget(n)
		}
	case verb == "churn" && n <= int(time.Second):
		churn.order(n)
	default:
		return fmt.Errorf("no such order: %q", order)
	}
	return nil
}

// standInChurn changes pods.
type standInChurn struct {
	members []*standInMember
	ended   chan struct{} // nil: it rests
}

// order has so many pods a second change.
func (c *standInChurn) order(rate int) {
	c.stop()
	if rate == 0 {
		return
	}
	c.ended = make(chan struct{})
	go c.run(time.Second/time.Duration(rate), c.ended)
}

func (c *standInChurn) stop() {
	if c.ended != nil {
		close(c.ended)
		c.ended = nil
	}
}

func (c *standInChurn) run(every time.Duration, ended <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	began, made := time.Now(), 0
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			// A ticker leaves out what comes too late on a busy machine.
			for due := int(time.Since(began) / every); made < due; made++ {
				c.members[rand.IntN(len(c.members))].Change(1)
			}
		}
	}
}

// startStandIn starts it, and writes a kubeconfig for it into dir.
func startStandIn(ctx context.Context, dir string, pods int) (p *peerProcess, kubeconfig string, err error) {
	if p, err = startStandIns(ctx, pods, 1); err != nil {
		return nil, "", err
	}
	kubeconfig = filepath.Join(dir, "stand-in.kubeconfig")
	if err := writeStandInKubeconfig(kubeconfig, p.first.Address); err != nil {
		p.kill()
		return nil, "", err
	}
	return p, kubeconfig, nil
}

// startStandIns starts one of several clusters.
func startStandIns(ctx context.Context, pods, clusters int) (*peerProcess, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return startPeerProcess(ctx, "stand-in", exec.Command(program, standInCommand, strconv.Itoa(pods), strconv.Itoa(clusters)))
}

func writeStandInKubeconfig(file, address string) error {
	return os.WriteFile(file, fmt.Appendf(nil, standInKubeconfig, address), 0o600)
}

const standInKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: stand-in, cluster: {server: %q}}]
users: [{name: nobody, user: {}}]
contexts: [{name: stand-in, context: {cluster: stand-in, user: nobody}}]
current-context: stand-in
`

package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are picked below the range that systems give to outgoing connections
// (from 32768 on Linux, 49152 elsewhere). Otherwise a client's connection could
// take the port of a component that is stopped for a while.
const minPort, maxPort = 20000, 32000

// pickPort returns preferred if it is free on loopback and otherwise a random
// free port that is not in taken.
func pickPort(preferred int, taken map[int]bool) (int, error) {
	if preferred != 0 && !taken[preferred] && portIsFree(preferred) {
		taken[preferred] = true
		return preferred, nil
	}
	for range 1000 {
		port := minPort + rand.IntN(maxPort-minPort)
		if !taken[port] && portIsFree(port) {
			taken[port] = true
			return port, nil
		}
	}
	return 0, errors.New("find a free port: all that were tried are in use")
}

func portIsFree(port int) bool {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

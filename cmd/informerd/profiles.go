package main

import (
	"log/slog"

	"github.com/informerd/informerd/server"
)

// listenProfiles opens the address that profiles are served on, nil if it is "".
func listenProfiles(addr string, log *slog.Logger) (*server.Profiles, error) {
	if addr == "" {
		return nil, nil
	}
	return server.ListenProfiles(addr, log)
}

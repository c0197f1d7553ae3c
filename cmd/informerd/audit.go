package main

import (
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/server"
	"github.com/informerd/informerd/server/audit"
)

// openAudit opens the audit log that a configuration asks for, nil if it asks for none.
// That it cannot be opened is an error of the start, where somebody looks. What goes wrong
// later stops nothing.
func openAudit(cfg config.Audit, stdout io.Writer, log *slog.Logger) (*audit.Log, error) {
	if cfg.File == "" {
		return nil, nil
	}
	if cfg.File == audit.Standard {
		// Whoever reads the standard output may go. Go ends a process that writes to it
		// then, unless it says that it knows.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	return audit.Open(audit.Options{
		File: cfg.File, Stdout: stdout, MaxSize: int64(cfg.MaxSizeMB) << 20, MaxBackups: cfg.MaxBackups,
		Omit: cfg.Omit, Log: log,
	})
}

// recorder is the Audit of a server; a nil *audit.Log would not be a nil one.
func recorder(records *audit.Log) server.Audit {
	if records == nil {
		return nil
	}
	return records
}

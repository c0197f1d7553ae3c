package main

import (
	"io"
	"log/slog"

	"k8s.io/klog/v2"

	"github.com/informerd/informerd/cmd/informerd/config"
)

// newLogger logs to w from level on, which may be changed later.
func newLogger(w io.Writer, format string, level *slog.LevelVar) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// routeKlog sends what client-go has to say to log, marked as its word.
func routeKlog(log *slog.Logger) { klog.SetSlogLogger(log.With("source", "client-go")) }

func logLevel(l config.Log) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return slog.LevelInfo
	}
	return level
}

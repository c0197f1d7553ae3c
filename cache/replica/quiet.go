package replica

import (
	"context"
	"log/slog"
)

// quiet lowers every record to Debug. client-go's Reflector reports each failed
// attempt as an error; informerd reports changes of state instead.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelDebug)
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	// logr does not ask Enabled before it hands over an error.
	if !q.Enabled(ctx, r.Level) {
		return nil
	}
	r.Level = slog.LevelDebug
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }

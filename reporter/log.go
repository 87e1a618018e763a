package reporter

import (
	"io"
	"log/slog"
)

// debugVerbosity is the --v from which on every tick is logged; client-go's own verbosity begins to talk at the same.
const debugVerbosity = 4

// NewLogger writes JSON or text lines to w.
func NewLogger(w io.Writer, format string, verbosity int) *slog.Logger {
	level := slog.LevelInfo
	if verbosity >= debugVerbosity {
		level = slog.LevelDebug
	}
	o := &slog.HandlerOptions{Level: level}
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

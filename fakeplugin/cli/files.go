package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/internal/host"
)

// maxTokenBytes bounds a token file: a larger one is some other file.
const maxTokenBytes = 4096

// openJournal appends to file, one write a line; without a file the journal is in memory only.
func openJournal[T journal.Entry[T]](h host.Host, file string) (*journal.Log[T], func(), error) {
	if file == "" {
		return journal.New[T](journal.DefaultCapacity, nil), func() {}, nil
	}
	f, err := h.Append(file)
	if err != nil {
		return nil, nil, fmt.Errorf("--journal: %w", err)
	}
	return journal.New[T](journal.DefaultCapacity, f), func() { _ = f.Close() }, nil
}

// listenToken is the token that the clients of an API must have. One that is not a file can be reached by every user.
func listenToken(flag string, at endpoint.Endpoint, file string) (string, error) {
	if !at.IsUnix() && file == "" {
		return "", fmt.Errorf("--%s %s: TCP needs --token-file, or anybody could use it", flag, at)
	}
	return readToken(file)
}

func readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTokenBytes+1))
	token := strings.TrimSpace(string(data))
	switch {
	case err != nil:
		return "", fmt.Errorf("--token-file: %w", err)
	case len(data) > maxTokenBytes || token == "":
		return "", fmt.Errorf("--token-file %s: expected a token of 1 to %d bytes", file, maxTokenBytes)
	}
	return token, nil
}

func newLog(w io.Writer, format string) (*slog.Logger, error) {
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, nil)), nil
	}
	return nil, fmt.Errorf("--log-format %q: expected json or text", format)
}

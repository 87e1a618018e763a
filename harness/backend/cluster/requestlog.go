package cluster

import (
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kmsharness/kmsharness/harness/record/requests"
)

// requestLog has the requests of the harness itself, which no agent sees: what it writes to the objects of a scenario is part of the history.
type requestLog struct {
	path string

	mu   sync.Mutex
	file *os.File
}

func openRequestLog(path string) (*requestLog, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &requestLog{path: path, file: file}, err
}

// Write implements io.Writer.
func (l *requestLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Write(line)
}

// harnessUser names the harness in the log: what its kubeconfig calls it is not known.
const harnessUser = "kmsharness"

// recorded is a configuration whose requests are logged.
func (l *requestLog) recorded(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.Wrap(func(base http.RoundTripper) http.RoundTripper {
		return &requests.Transport{Base: base, Log: l, Now: time.Now, User: func(*http.Request) string { return harnessUser }}
	})
	return c
}

func (l *requestLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

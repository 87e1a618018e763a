package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kmsharness/kmsharness/internal/poll"
)

// Probe returns nil when the process is ready. It must return soon after its context ends.
type Probe func(context.Context) error

// WaitReady calls probe at once and then at every interval until it succeeds. It fails when ctx ends or the process does;
// the error has the last answer of the probe, and the end of the log.
func (p *Process) WaitReady(ctx context.Context, every time.Duration, probe Probe) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // a probe must not outlast the process it asks
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	var last error // what the probe said, rather than that it was interrupted
	err := poll.Until(ctx, every, func() (bool, error) {
		err := probe(ctx)
		if last == nil || ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		return nil
	}
	if exit, ended := p.Exit(); ended { // which ends ctx as well
		return fmt.Errorf("%s ended before it was ready: %v; the end of %s:\n%s", p.spec.Name, exit, p.spec.LogFile, tail(p.spec.LogFile, tailBytes))
	}
	return fmt.Errorf("%s is not ready: %w; last probe: %w; see %s", p.spec.Name, err, last, p.spec.LogFile)
}

// tailBytes is enough for the fatal lines of a Kubernetes component, and still readable in a terminal; crashBytes for the last lines of a program.
const (
	tailBytes  = 2048
	crashBytes = 400
)

// tail is the end of a log from the beginning of a line.
func tail(log string, most int64) string {
	f, err := os.Open(log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	text := make([]byte, min(size, most))
	if _, err := f.ReadAt(text, size-int64(len(text))); err != nil {
		return err.Error()
	}
	if i := bytes.IndexByte(text, '\n'); size > most && i >= 0 && i < len(text)-1 {
		text = text[i+1:]
	}
	return string(text)
}

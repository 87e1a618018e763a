package hold

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// drainLimit bounds the wait for the last words of a program that is gone: only an orphan that kept the pipe takes longer,
// and it is about to be gone as well.
const drainLimit = time.Second

// output copies what the program prints to the container's own streams, where the kubelet looks, and to a log, where
// the harness looks. It is one pipe for each stream, through all starts of the program.
type output struct {
	stdout, stderr *os.File // for the program
	readers        []*os.File
	log            *os.File
	copies         sync.WaitGroup
}

func openOutput(path string, stdout, stderr io.Writer) (*output, error) {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("--log: %w", err)
	}
	o := &output{log: log}
	if o.stdout, err = o.pipe(stdout); err == nil {
		o.stderr, err = o.pipe(stderr)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make pipes for the program's output: %w", err), o.close())
	}
	return o, nil
}

func (o *output) pipe(to io.Writer) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o.readers = append(o.readers, r)
	o.copies.Go(func() { _, _ = io.Copy(both{to, o.log}, r) })
	return w, nil
}

// close returns when everything that the program has said is copied.
func (o *output) close() error {
	for _, w := range []*os.File{o.stdout, o.stderr} {
		if w != nil {
			_ = w.Close()
		}
	}
	for _, r := range o.readers {
		_ = r.SetReadDeadline(time.Now().Add(drainLimit))
	}
	o.copies.Wait()
	for _, r := range o.readers {
		_ = r.Close()
	}
	return o.log.Close()
}

// both writes to two places and never fails: a full disk may cost lines, but not stop the program at its next one.
type both [2]io.Writer

func (b both) Write(p []byte) (int, error) {
	for _, w := range b {
		_, _ = w.Write(p)
	}
	return len(p), nil
}

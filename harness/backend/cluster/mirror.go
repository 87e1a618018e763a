package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/harness/agent"
)

// mirror is a folder of this machine that stands for the folder of a pod's agent: it has copies of journals and logs, which grow as those in
// the pod do, and sockets that lead to those in the pod.
type mirror struct {
	dir   string
	agent *agent.Client

	mu    sync.Mutex
	has   agent.Sizes
	grown chan struct{} // closed when has changes

	ctx       context.Context // of its goroutines
	cancel    context.CancelFunc
	all       sync.WaitGroup
	listeners []net.Listener
}

// newMirror copies nothing yet.
func newMirror(dir string, a *agent.Client) *mirror {
	m := &mirror{dir: dir, agent: a, has: agent.Sizes{}, grown: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// file is the path of a name on this machine.
func (m *mirror) file(name string) string { return filepath.Join(m.dir, name) }

// start copies until close. A stream that breaks is begun again where it was.
func (m *mirror) start() {
	m.all.Go(func() {
		ticker := time.NewTicker(poll)
		defer ticker.Stop()
		for {
			_ = m.agent.Follow(m.ctx, m.sizes(), m.append) // sync says what is missing in the end
			select {
			case <-m.ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
}

func (m *mirror) sizes() agent.Sizes {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.has)
}

// append writes the next part of a file.
func (m *mirror) append(name string, at int64, content []byte) error {
	path := m.file(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, at)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("copy of %s: %w", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.has[name] = at + int64(len(content))
	close(m.grown)
	m.grown = make(chan struct{})
	return nil
}

// sync returns when the copies have all that the files in the pod have now.
func (m *mirror) sync(ctx context.Context) error {
	want, err := m.agent.Sizes(ctx)
	if err != nil {
		return err
	}
	for {
		m.mu.Lock()
		missing, grown := "", m.grown
		for name, size := range want {
			if m.has[name] < size {
				missing = fmt.Sprintf("%s has %d of %d bytes", name, m.has[name], size)
			}
		}
		m.mu.Unlock()
		if missing == "" {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return fmt.Errorf("copy of %s: %w", missing, ctx.Err())
		}
	}
}

// socket makes a socket of this machine that leads to the one of that name in the pod.
func (m *mirror) socket(name string) (path string, err error) {
	path = m.file(name)
	return path, m.lendSocket(path, name)
}

// lendSocket makes a socket of this machine that leads to one, or to a port ("tcp:PORT"), of the pod.
func (m *mirror) lendSocket(path, to string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("socket that stands for %s: %w", to, err)
	}
	m.serve(l, to)
	return nil
}

// port makes a port of this machine that leads to the one in the pod.
func (m *mirror) port(port string) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("port that stands for %s: %w", port, err)
	}
	m.serve(l, "tcp:"+port)
	return l.Addr().String(), nil
}

func (m *mirror) serve(l net.Listener, to string) {
	m.mu.Lock()
	m.listeners = append(m.listeners, l)
	m.mu.Unlock()
	m.all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			m.all.Go(func() { m.lead(conn, to) })
		}
	})
}

// dialTimeout bounds a connection to a socket in a pod.
const dialTimeout = 5 * time.Second

// lead passes a connection on. One that cannot be made ends as a connection to a process that is gone does.
func (m *mirror) lead(conn net.Conn, to string) {
	ctx, cancel := context.WithTimeout(m.ctx, dialTimeout)
	defer cancel()
	there, err := m.agent.Dial(ctx, to)
	if err != nil {
		_ = conn.Close()
		return
	}
	ended := context.AfterFunc(m.ctx, func() { _, _ = conn.Close(), there.Close() })
	defer ended()
	agent.Splice(conn, there)
}

// close ends all copies and connections. The files stay.
func (m *mirror) close() {
	m.cancel()
	m.mu.Lock()
	for _, l := range m.listeners {
		_ = l.Close()
	}
	m.mu.Unlock()
	m.all.Wait()
}

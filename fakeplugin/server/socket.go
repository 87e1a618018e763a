package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/turn"
)

// socket keeps what is at the plugin's address as the fault program wants it.
type socket struct {
	host     host.Host
	takeOver bool
	at       endpoint.Endpoint
	mode     fs.FileMode
	serve    func(net.Listener) // returns when the listener is closed
	conns    *conns
	dial     func(*conn) error // listener.connect
	hangUp   atomic.Bool

	turn  turn.Turn
	state fault.Socket // as it is; File is "" before the start and after a failure
	stop  func()       // ends what listens now; nil if nothing does
	ended bool
}

// become brings the socket into the wanted state, which it asks for when it is its turn: of two changes at the same
// time the later one decides. After an error it can be called again.
func (s *socket) become(wanted func() fault.Socket) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.ended {
		return errors.New("the plugin is stopping")
	}
	want := wanted()
	s.hangUp.Store(want.HangUp)
	was := s.state
	if want.File != was.File || want.Renewed != was.Renewed {
		s.state.File = ""
		if err := s.reopen(want.File); err != nil {
			return fmt.Errorf("bring the socket into state %q: %w", want.File, err)
		}
	}
	if err := s.chmod(want); err != nil {
		s.state.File = ""
		return err
	}
	s.state = want
	if cutsMore(was.Cut, want.Cut) { // last, so that who reconnects meets the new state
		s.conns.closeAll()
	}
	return nil
}

func cutsMore(was, want string) bool {
	return slices.ContainsFunc(strings.SplitAfter(want, ";"), func(id string) bool { return id != "" && !strings.Contains(";"+was, ";"+id) })
}

func (s *socket) reopen(file fault.File) error {
	s.close()
	switch file {
	case fault.FileServed:
		return s.listen(s.run)
	case fault.FileSilent:
		return s.listen(silence)
	case fault.FileMissing:
		return s.clear()
	case fault.FileDecoy:
		return errors.Join(s.clear(), os.WriteFile(s.at.Address, []byte(endpoint.DecoyText), endpoint.DefaultMode))
	default: // stale: a socket on which nobody listens
		if err := s.listen(func(l net.Listener) func() { return func() { _ = l.Close() } }); err != nil {
			return err
		}
		s.close()
		return nil
	}
}

func (s *socket) listen(run func(net.Listener) func()) error {
	l, err := endpoint.Open(s.host, s.at, s.mode, s.takeOver)
	if err != nil {
		return err
	}
	s.stop = run(l)
	return nil
}

// run serves the plugin on l.
func (s *socket) run(l net.Listener) (stop func()) {
	var serving sync.WaitGroup
	serving.Go(func() { s.serve(listener{l, s.conns, &s.hangUp, s.dial}) })
	return func() {
		_ = l.Close()
		serving.Wait()
	}
}

func (s *socket) close() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// clear removes what of ours is at the path.
func (s *socket) clear() error {
	if !s.at.IsFile() {
		return nil
	}
	return endpoint.RemoveStale(s.host, s.at.Address)
}

func (s *socket) chmod(want fault.Socket) error {
	if !s.at.IsFile() || want.File == fault.FileMissing || want.File == fault.FileDecoy {
		return nil
	}
	mode := s.mode
	if want.Mode != nil {
		mode = *want.Mode
	}
	if err := os.Chmod(s.at.Address, mode); err != nil {
		return fmt.Errorf("set the mode of the socket: %w", err)
	}
	return nil
}

func (s *socket) now() fault.File {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.state.File
}

// end stops listening and leaves nothing behind.
func (s *socket) end() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.close()
	s.ended = true
	return endpoint.Leave(s.host, s.at)
}

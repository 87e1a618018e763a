package server

import (
	"fmt"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
)

// Inject puts a fault in force. When it returns the socket is as the fault wants it, and the next call is struck.
func (s *Server) Inject(f fault.Fault) (fault.Active, error) {
	if err := s.possible(f); err != nil {
		return fault.Active{}, err
	}
	a, err := s.o.Program.Inject(f)
	if err != nil {
		return a, err
	}
	if err := s.apply(); err != nil {
		s.o.Program.Release(fault.ByID(a.ID))
		return a, fmt.Errorf("inject %s: %w", f.Name, err)
	}
	s.changed()
	s.o.Log.Info("fault injected", "id", a.ID, "fault", f.Name, "params", f.Params())
	return a, nil
}

func (s *Server) possible(f fault.Fault) error {
	if s.o.Listen.IsFile() {
		return nil
	}
	if f.Name == "socket-permissions" || (f.Name == "socket-replaced" && f.Params()["with"] == "file") {
		return fmt.Errorf("fault %s: it needs a socket file, and this plugin listens on the abstract socket %s", f.Name, s.o.Listen)
	}
	return nil
}

// Release ends the faults that match. When it returns the socket is good again, or as other faults want it.
func (s *Server) Release(match func(fault.Active) bool) ([]fault.Active, error) {
	ended := s.o.Program.Release(match)
	for _, a := range ended {
		s.o.Log.Info("fault released", "id", a.ID, "fault", a.Fault.Name, "hits", a.Hits)
	}
	s.changed()
	if err := s.apply(); err != nil {
		return ended, fmt.Errorf("release: %w", err)
	}
	return ended, nil
}

// SetProfile makes the plugin stand for a provider, or none: its key_id, its latencies, its failures.
func (s *Server) SetProfile(p *profile.Profile) error {
	of, ok := s.o.Plugin.(Profiled)
	switch {
	case ok:
		of.SetProfile(p)
	case p != nil:
		return fmt.Errorf("profile %s: this plugin is in front of another one, whose provider it cannot change", p.Name)
	}
	s.o.Program.SetProfile(p)
	return nil
}

func (s *Server) Faults() []fault.Active { return s.o.Program.List() }

// State is a plugin instance at a glance.
type State struct {
	Node        string         `json:"node"`
	KeyID       string         `json:"keyID"`
	Listen      string         `json:"listen"`
	Socket      fault.File     `json:"socket"`
	Connections int            `json:"connections"`
	Started     string         `json:"started"`
	Calls       uint64         `json:"calls"`
	Key         string         `json:"key"` // in the remote KMS
	KEKID       string         `json:"kekID"`
	KEKVersion  int            `json:"kekVersion"`
	LatestKEKID string         `json:"latestKEKID"` // in the remote KMS, noticed or not
	NoticeLag   string         `json:"noticeLag"`
	Problem     string         `json:"problem,omitempty"` // that Status would tell if no fault were in force
	Profile     string         `json:"profile,omitempty"`
	Upstream    string         `json:"upstream,omitempty"` // endpoint of the plugin behind this one
	Faults      []fault.Active `json:"faults"`
	JournalErr  string         `json:"journalError,omitempty"`
}

func (s *Server) State() State {
	v := s.o.Plugin.View()
	st := State{
		Node: s.o.Node, KeyID: s.o.KeyID, Listen: s.o.Listen.String(), Socket: s.socket.now(),
		Connections: s.socket.conns.count(), Started: s.started.UTC().Format(timeFormat), Calls: s.o.Journal.Last(),
		Key: s.o.Plugin.Key(), KEKID: s.o.Plugin.KeyID(v.Noticed), KEKVersion: v.Noticed.Version, LatestKEKID: s.o.Plugin.KeyID(v.Latest),
		NoticeLag: s.o.Plugin.NoticeLag().String(), Problem: v.Problem, Faults: append([]fault.Active{}, s.Faults()...),
	}
	if p := profileOf(s.o.Plugin); p != nil {
		st.Profile = p.Name
	}
	if up, ok := s.o.Plugin.(Upstream); ok {
		st.Upstream = up.Endpoint()
	}
	if err := s.o.Journal.Err(); err != nil {
		st.JournalErr = err.Error()
	}
	return st
}

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

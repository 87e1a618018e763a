package view

import (
	"maps"
	"slices"

	"github.com/kmsharness/kmsharness/harness/history"
)

// firstFailure is the least HTTP status that means a request did not succeed; 0 means that there was no response.
const firstFailure = 400

// applyRequest counts the writes of a reporter to the operator CR, told by its identity.
func (s *State) applyRequest(r history.Request) bool {
	node := r.Reporter()
	if node == "" || !isResource(r.Resource, s.operator) || !slices.Contains([]string{"apply", "patch", "update", "create", "delete"}, r.Verb) {
		return false
	}
	w := s.writes[node]
	w.Count++
	w.At = maps.Clone(w.At) // one that an expression was given is never written to again
	if w.At == nil {
		w.At = map[string]int64{}
	}
	w.At[r.APIServer]++
	if r.Code == 0 || r.Code >= firstFailure {
		w.Failed++
	}
	s.writes[node] = w
	return true
}

// stored is what is known of encrypted objects and of who encrypts them.
type stored struct {
	data       Data
	digests    map[string][]string // of objects as last written
	providers  map[string]bool     // that API servers were configured with
	encryption Encryption
}

// object counts objects. One that reads back with another digest than it was written with is lost, whatever the
// recorder thought of the read.
func (s *stored) object(d history.Data) bool {
	switch {
	case d.Op == history.DataWritten && d.OK:
		s.data.Written++
		s.digests[d.Object] = []string{d.Digest}
	case d.Op == history.DataWritten:
		s.data.Refused++
		if s.digests[d.Object] != nil { // perhaps it was made
			s.digests[d.Object] = append(s.digests[d.Object], d.Digest)
		}
	case d.Op == history.DataRestored:
		if s.digests[d.Object] = []string{d.Digest}; d.Digest == "" {
			delete(s.digests, d.Object)
		}
	case d.Op == history.DataRead && d.OK && s.matches(d):
		s.data.Verified++
	case d.Op == history.DataRead:
		s.data.Lost++
	default:
		return false
	}
	return true
}

// matches reports whether a read returned a value that was written. Without a digest of a write any value may be right.
func (s *stored) matches(d history.Data) bool {
	written, ok := s.digests[d.Object]
	return !ok || d.Digest == "" || slices.Contains(written, "") || slices.Contains(written, d.Digest)
}

// inventory replaces the maps: ones that an expression was given are never written to again. A provider that any API server was
// ever configured with is there, perhaps with no object: that it is rid of them is what an expression asks.
func (s *stored) inventory(c history.StorageInventory) {
	under, keys, kekIDs := map[string]int64{}, map[string]int64{}, map[string][]string{}
	for provider := range s.providers {
		under[provider], keys[provider], kekIDs[provider] = 0, 0, []string{}
	}
	for _, u := range c.Under {
		under[u.Provider] += int64(u.Count)
		if u.KEKID != "" {
			keys[u.Provider]++
			kekIDs[u.Provider] = append(kekIDs[u.Provider], u.KEKID)
		}
	}
	s.data.Under, s.data.Keys, s.data.KEKIDs = under, keys, kekIDs
}

// configured replaces the map, as inventory does.
func (s *stored) configured(e history.Encryption) bool {
	for _, provider := range e.Providers {
		s.providers[provider] = true
	}
	if e.State != history.EncryptionLoaded {
		return false
	}
	loaded := Encryption{e.Node: e.Providers}
	for node, providers := range s.encryption {
		if node != e.Node {
			loaded[node] = providers
		}
	}
	s.encryption = loaded
	return true
}

// applyMetrics replaces the map of a node: one that an expression was given is never written to again.
func (s *State) applyMetrics(m history.Metrics) {
	plugins := map[string]Metrics{}
	for _, p := range m.Plugins {
		plugins[p.KeyID] = Metrics{healthy(p.Healthy), int64(p.Calls), int64(p.Errors), p.Seconds}
	}
	s.metrics[m.Node] = plugins
}

func healthy(yes *bool) int64 {
	switch {
	case yes == nil:
		return -1
	case *yes:
		return 1
	default:
		return 0
	}
}

// applySockets replaces the map of a node, as applyMetrics does.
func (s *State) applySockets(n history.Sockets) {
	sockets := map[string]Socket{}
	for _, f := range n.Plugins {
		sockets[f.KeyID] = Socket{f.Path, f.Mode, int64(f.UID), int64(f.GID), int64(f.User)}
	}
	s.sockets[n.Node] = sockets
}

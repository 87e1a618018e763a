package reconcile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/aggregator/streams"
	"github.com/kmsharness/kmsharness/contract"
)

// streaming is the part of a pass that shows the streams of reporters in the EncryptionHealth. It comes last: the rollups carry the news.
type streaming struct {
	sessions *streams.Sessions // nil: there are none
	operator core.Operator

	object          map[string]any
	picture         streams.Picture
	status          contract.HealthStatus
	changed         bool
	err             error
	ended, standing []streams.ID
}

// look decides what the EncryptionHealth should say.
func (s *streaming) look(state State, in core.Input) {
	if s.sessions == nil {
		return
	}
	s.ended = append(s.ended, s.sessions.Expect(slices.Collect(maps.Keys(in.Nodes)))...)
	s.object, s.picture = state.Health, s.sessions.Picture()
	var standing contract.HealthStatus
	if status, _, _ := unstructured.NestedMap(s.object, "status"); status != nil {
		// What cannot be read is written anew.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(status, &standing)
	}
	s.status, s.changed = s.picture.Status(standing, Generation(s.object), in.KMSActive, in.Now)
	s.changed = s.changed && s.object != nil
}

// write is the request that the EncryptionHealth needs; false if it needs none.
func (s *streaming) write() (Action, bool) {
	switch {
	case s.sessions == nil:
		return Action{}, false
	case !s.changed:
		s.wrote(nil)
		return Action{}, false
	}
	request, err := healthUpdate(s.object, s.status)
	if err != nil {
		s.wrote(err)
		return Action{}, false
	}
	return Action{Kind: Write, Write: request}, true
}

func (s *streaming) wrote(err error) {
	if s.err = err; err == nil {
		s.standing = s.sessions.Shown(s.picture)
	}
}

// Generation of an EncryptionHealth's spec; 0 if there is none.
func Generation(object map[string]any) int64 {
	return (&unstructured.Unstructured{Object: object}).GetGeneration()
}

// healthUpdate replaces the status of the version that was read: an aggregator that does not know yet that another one leads is refused with a conflict.
func healthUpdate(object map[string]any, status contract.HealthStatus) (Request, error) {
	text, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return Request{}, fmt.Errorf("encode the status of the EncryptionHealth: %w", err)
	}
	next := maps.Clone(object)
	next["status"] = text
	body, err := json.Marshal(next)
	if err != nil {
		return Request{}, fmt.Errorf("encode the EncryptionHealth: %w", err)
	}
	return Request{Target: TargetHealth, Body: body}, nil
}

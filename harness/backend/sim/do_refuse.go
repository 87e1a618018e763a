package sim

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// refuse lets API servers answer requests with an error, or no longer.
func (fs *faults) refuse(_ context.Context, a *scenario.Refuse) error {
	role, mode := a.Role, a.Mode
	node, err := fs.apiServerOf(a.Node)
	if err != nil {
		return err
	}
	if mode == history.RefuseRestore {
		fs.w.endRefusals(func(f *refusal) bool {
			return (role == "" || role == f.what.Role) && (node == "" || node == f.what.Node)
		})
		return nil
	}
	f := &refusal{left: cmp.Or(a.Count, -1), what: history.Refusal{Role: role, Node: node, Verb: a.Method, Mode: mode, Code: history.RefusalCode(mode)}}
	if f.what.Code == 0 {
		return fmt.Errorf("mode %q: expected one of %v, or restore", mode, history.RefusalModes())
	}
	if mode == history.RefuseTooManyRequests {
		f.what.RetryAfter = time.Duration(cmp.Or(a.RetryAfter, 1)) * time.Second
	}
	fs.w.beginRefusal(f, a.For.Value())
	return nil
}

// watches lets those of API servers be late, or ends them.
func (fs *faults) watches(_ context.Context, a *scenario.Watches) error {
	node, err := fs.apiServerOf(a.Node)
	if err != nil {
		return err
	}
	over := errExpired
	switch mode := a.Mode; mode {
	case history.WatchesLate:
		fs.w.beLate(node, a.By.Value())
		return nil
	case history.WatchesRestore:
		fs.w.beLate(node, 0)
		return nil
	case history.WatchesExpired:
	case history.WatchesClosed:
		over = errClosed
	default:
		return fmt.Errorf("mode %q: expected late, expired, closed or restore", mode)
	}
	for _, n := range fs.w.main.nodes {
		if node == "" || n.name == node {
			n.server.endWatches(over)
		}
	}
	return nil
}

// apiServerOf is the node of the API server that is meant; empty: all.
func (fs *faults) apiServerOf(word string) (string, error) {
	if word == "" || word == scenario.NodeAll {
		return "", nil
	}
	_, err := fs.e.procs.selectNodes(word, true)
	return word, err
}

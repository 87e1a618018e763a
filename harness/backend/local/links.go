package local

import (
	"errors"
	"sync"

	"github.com/kmsharness/kmsharness/harness/netfault"
)

// links are those of programs on nodes. The links of a node fail together. The zero value is empty; it is safe for concurrent use.
type links struct {
	mu sync.Mutex
	of map[string][]*netfault.Link // by node
}

func (ls *links) add(node string, l *netfault.Link) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.of == nil {
		ls.of = map[string][]*netfault.Link{}
	}
	ls.of[node] = append(ls.of[node], l)
}

func (ls *links) set(node string, f netfault.Fault) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var errs []error
	for _, l := range ls.of[node] {
		errs = append(errs, l.Set(f))
	}
	return errors.Join(errs...)
}

// drop closes the links of a node, and returns them.
func (ls *links) drop(node string) (dropped []*netfault.Link, err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, l := range ls.of[node] {
		err = errors.Join(err, l.Close())
	}
	dropped = ls.of[node]
	delete(ls.of, node)
	return dropped, err
}

func (ls *links) close() error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	var errs []error
	for _, of := range ls.of {
		for _, l := range of {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

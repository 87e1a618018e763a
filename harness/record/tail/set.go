package tail

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kmsharness/kmsharness/internal/poll"
)

// Set follows many files from one goroutine. It is safe for concurrent use.
type Set struct {
	// Changed reports whether a file may have something new since it was asked; nil: the file system is asked.
	Changed func(path string) bool

	mu        sync.Mutex
	followers map[string]*Follower
	gone      []error // problems of files that are no longer followed
}

// NewSet follows nothing yet.
func NewSet() *Set { return &Set{followers: map[string]*Follower{}} }

// From says where following begins.
type From int

const (
	FromStart From = iota // everything in the file counts
	FromEnd               // what is there already belongs to somebody else
)

// Add follows path; a path that is followed already goes on as it was.
func (s *Set) Add(path string, from From, line Line) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followers[path] != nil {
		return nil
	}
	f := NewFollower(path, line)
	if from == FromEnd {
		if err := f.SkipExisting(); err != nil {
			return err
		}
	}
	s.followers[path] = f
	return nil
}

// Poll reads every file to its end; see the package comment for what that guarantees.
func (s *Set) Poll() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for path, f := range s.followers {
		if s.Changed == nil || s.Changed(path) {
			errs = append(errs, f.Poll())
		}
	}
	return errors.Join(errs...)
}

// Run polls at every tick until ctx is done. A file that cannot be read becomes a problem, once per file.
func (s *Set) Run(ctx context.Context, ticks <-chan time.Time) {
	poll.Each(ctx, ticks, func() {
		err := s.Poll()
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil && len(s.gone) < maxProblems {
			s.gone = append(s.gone, err)
		}
	})
}

const (
	// finishWithin bounds the wait for the end of a line whose beginning is there. A write that crosses a page of the file shows in parts.
	finishWithin = time.Second
	finishPoll   = 5 * time.Millisecond
)

// finish polls until every line that is being written has its end, or nobody seems to write it any more.
func (s *Set) finish() error {
	ctx, cancel := context.WithTimeout(context.Background(), finishWithin)
	defer cancel()
	err := poll.Until(ctx, finishPoll, func() (bool, error) {
		err := s.Poll()
		return !s.unfinished(), err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

func (s *Set) unfinished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(slices.Collect(maps.Values(s.followers)), (*Follower).unfinished)
}

// Close polls a last time, releases the files and says what could not be used. A process may go on writing meanwhile.
func (s *Set) Close() error {
	err := s.finish()
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := append([]error{err}, s.gone...)
	for path, f := range s.followers {
		errs = append(errs, f.Problems()...)
		if err := f.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", path, err))
		}
		delete(s.followers, path)
	}
	return errors.Join(errs...)
}

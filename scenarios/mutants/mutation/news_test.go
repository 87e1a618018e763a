package mutation

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter/core"
)

// TestOnlyNews: the mutant has this one mistake and no other.
func TestOnlyNews(t *testing.T) {
	inner := &counter{}
	p := &OnlyNews{Publisher: inner}
	at := time.Unix(1_000_000, 0)
	for i, c := range []struct {
		status contract.Status
		fails  error
		writes int
	}{
		{contract.StatusHealthy, nil, 1}, // the first report of all
		{contract.StatusHealthy, nil, 1},
		{contract.StatusError, errors.New("connection refused"), 2},
		{contract.StatusError, nil, 3}, // it was not written, so it is still new
		{contract.StatusError, nil, 3},
		{contract.StatusHealthy, nil, 4},
	} {
		inner.err = c.fails
		entry := contract.Entry{KeyID: "1", Status: c.status, LastChecked: at.Add(time.Duration(i) * time.Second)}
		err := p.Apply(context.Background(), core.Action{Report: contract.Report{Entries: []contract.Entry{entry}}})
		if inner.writes != c.writes || !errors.Is(err, c.fails) {
			t.Errorf("write %d: %d came through, want %d; %v", i, inner.writes, c.writes, err)
		}
	}
}

type counter struct {
	writes int
	err    error
}

func (c *counter) Apply(context.Context, core.Action) error { c.writes++; return c.err }

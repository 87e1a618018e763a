package main

import (
	"context"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/reporter"
	"github.com/kmsharness/kmsharness/reporter/core"
	"github.com/kmsharness/kmsharness/reporter/options"
)

// changes is a publisher that spares the API server every write that says nothing new. It looks like thrift, and it
// takes the meaning from lastChecked: nobody can tell a healthy reporter from a dead one any more.
type changes struct {
	reporter.Publisher
	last []contract.Entry // what was written last, without times; nil before the first write
}

func onChangesOnly(options.Options) (reporter.Change, error) {
	return func(l *reporter.Loop) { l.Publisher = onlyChanges(l.Publisher) }, nil
}

func onlyChanges(p reporter.Publisher) reporter.Publisher { return &changes{Publisher: p} }

// Apply implements reporter.Publisher.
func (c *changes) Apply(ctx context.Context, write core.Action) error {
	entries := timeless(write.Report.Entries)
	if slices.Equal(entries, c.last) {
		return nil
	}
	err := c.Publisher.Apply(ctx, write)
	if err == nil {
		c.last = entries
	}
	return err
}

func timeless(entries []contract.Entry) []contract.Entry {
	out := slices.Clone(entries)
	for i := range out {
		out[i].LastChecked = time.Time{}
	}
	return out
}

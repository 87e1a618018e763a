package kind

import (
	"context"
	"path/filepath"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	holdjournal "github.com/kmsharness/kmsharness/harness/record/hold"
	"github.com/kmsharness/kmsharness/harness/record/tail"
)

// follow passes what a unit's journal tells on to the listener.
func (p *plane) follow(dir, unit string, identity history.Process) error {
	return p.followWhoever(dir, unit, func() (history.Process, bool) { return identity, true })
}

// followWhoever is follow for a unit in which one program comes after another. What is about none of them is not passed on.
func (p *plane) followWhoever(dir, unit string, who func() (history.Process, bool)) error {
	return p.journals.Add(filepath.Join(dir, holdJournal(unit)), tail.FromStart, func(line []byte) error {
		change, err := holdjournal.Decode(line)
		if err != nil {
			return err
		}
		identity, any := who()
		if !any {
			return nil
		}
		switch told := change.Of(identity).(type) {
		case *history.Stall:
			p.TellStall(*told)
		case *history.Process:
			p.ledger.note(unitOn{dir, unit}, *told)
			p.Tell(change.At, *told)
		}
		return nil
	})
}

// tailEvery is how often the journals of hold are read.
const tailEvery = 25 * time.Millisecond

// startTailing reads the journals until Close.
func (p *plane) startTailing() {
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	p.tailing.Go(func() {
		ticker := time.NewTicker(tailEvery)
		defer ticker.Stop()
		p.journals.Run(ctx, ticker.C)
	})
}

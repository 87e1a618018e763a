package cli

import (
	"fmt"
	"time"

	"github.com/kmsharness/kmsharness/harness/swarm"
	"github.com/kmsharness/kmsharness/internal/printer"
)

// showSeeds shows how many seeds are done.
func showSeeds(p *printer.Progress, s *swarm.Summary, part swarm.Range, took time.Duration) {
	virtual := time.Duration(s.VirtualSeconds * float64(time.Second))
	p.Show(fmt.Sprintf("%d of %d seeds, %v of virtual time, %.0f times real time, %d did not pass", s.Seeds, part.To-part.From+1,
		virtual.Round(time.Second), virtual.Seconds()/max(took.Seconds(), 1e-3), len(s.Failed)))
}

// showShrinking returns a function that shows how short a scenario has become.
func showShrinking(p *printer.Progress) func(name string, runs, steps int) {
	return func(name string, runs, steps int) {
		p.Show(fmt.Sprintf("shrinking %s: %d steps after %d runs", name, steps, runs))
	}
}

package kind

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
)

// slots is how many containers for plugins every pod of an API server has. An operator never needs more than two plugins at a time, the
// writer and the one before it or after it; one that could not be ended yet is not in the way of the next.
const slots = 3

// slot is a container for a plugin. The containers of a pod are fixed, and the keyIDs of an operator's plugins are not: each container waits
// below hold for a command, and has whichever plugin is in it at the moment.
type slot struct {
	unit string
	is   atomic.Pointer[live.Plugin] // that is in it, or was the last
}

// slotUnits are the units of a pod's containers for plugins.
func slotUnits() []string {
	units := make([]string, slots)
	for i := range units {
		units[i] = unitOfPlugin(strconv.Itoa(i + 1))
	}
	return units
}

func newSlots() []*slot {
	all := make([]*slot, 0, slots)
	for _, unit := range slotUnits() {
		all = append(all, &slot{unit: unit})
	}
	return all
}

// plugin is the one that is in it, or was the last; nil: none was.
func (s *slot) plugin() *live.Plugin { return s.is.Load() }

// usedBy says whether the plugin that is in it is one of the node's. One that is not is gone: a plugin of the same keyID that comes later is
// another.
func (s *slot) usedBy(n *live.Node) bool {
	g := s.plugin()
	return g != nil && n.Plugin(g.KeyID) == g
}

// who is whose the lines of the container's journal are; nobody's while no plugin was in it.
func (s *slot) who() (history.Process, bool) {
	if g := s.plugin(); g != nil {
		return g.Identity, true
	}
	return history.Process{}, false
}

// freeSlot is a container in which there is no plugin of the node; nil: there is none. The one that bears the keyID comes first, so that
// keyIDs 1 and 2 are always found where their names say.
func freeSlot(all []*slot, n *live.Node, keyID string) *slot {
	var free *slot
	for _, s := range all {
		if s.usedBy(n) {
			continue
		}
		if s.unit == unitOfPlugin(keyID) {
			return s
		}
		if free == nil {
			free = s
		}
	}
	return free
}

func takenBy(all []*slot) []string {
	var ids []string
	for _, s := range all {
		if g := s.plugin(); g != nil {
			ids = append(ids, g.KeyID)
		}
	}
	return ids
}

// inUnit says whether a plugin runs in the container of a unit.
func inUnit(g *live.Plugin, unit string) bool {
	u, ok := g.Unit.(*held)
	return ok && u.name == unit
}

// Files of the plugins of a pod.
const (
	journalPrefix = "journal-"
	journalSuffix = ".jsonl"
)

// forgetJournals empties the journals of plugins that are not of the node: a scenario that starts one reads its journal from the
// beginning, and what was called in the scenario before is no call of this one.
func forgetJournals(at podFiles, living []*live.Plugin) error {
	all, err := filepath.Glob(at.file(journalPrefix + "*" + journalSuffix))
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range all {
		if !slices.ContainsFunc(living, func(g *live.Plugin) bool { return g.Journal == file }) {
			errs = append(errs, forget(file))
		}
	}
	return errors.Join(errs...)
}

// forget empties a journal, if there is one.
func forget(journal string) error {
	if err := os.Truncate(journal, 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

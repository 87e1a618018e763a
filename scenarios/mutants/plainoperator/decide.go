package plainoperator

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Action is a kind of write.
type Action string

// Actions, and what of a Step they use.
const (
	CreateKey       Action = "CreateKey"       // Key, Replace: a key Secret for the desired encryption
	UpdateKey       Action = "UpdateKey"       // Key: the desired plugin configuration and credentials
	WriteTarget     Action = "WriteTarget"     // File: what is to be rolled out
	StartMigration  Action = "StartMigration"  // Key, Resource: create the StorageVersionMigration
	DropMigration   Action = "DropMigration"   // Resource: delete it
	MarkMigrated    Action = "MarkMigrated"    // Key, Resource: annotate the key Secret
	ForgetMigrated  Action = "ForgetMigrated"  // Key: take these annotations back
	AskPreflight    Action = "AskPreflight"    // Hash: record that it needs a check
	StartPreflight  Action = "StartPreflight"  // Hash, Key: create the pod
	RecordPreflight Action = "RecordPreflight" // Hash, OK, RemoteKeyID: record the result
	EndPreflight    Action = "EndPreflight"    // delete the pod
	PruneKey        Action = "PruneKey"        // Key: delete the key Secret, its finalizer first
)

// Step is one write. A pass makes at most one; the zero Step is none.
type Step struct {
	Do          Action
	Key         int
	Resource    string
	Hash        string
	RemoteKeyID string
	OK          bool
	Replace     bool // overwrite a key Secret that exists
	File        File
}

// Wait is what a pass without a step waits for.
type Wait string

// Waits.
const (
	ForRollout   Wait = "Rollout"
	ForMigration Wait = "Migration"
	ForPreflight Wait = "Preflight"
)

// Decision is the outcome of one pass.
type Decision struct {
	Step Step
	// Waiting is empty where there is nothing to wait for; Message says more.
	Waiting Wait
	Message string
	// Problems are by the condition that reports them.
	Problems map[string]string
}

func (d *Decision) wait(w Wait, message string) { d.Waiting, d.Message = w, message }

func (d *Decision) problem(condition, message string) {
	if d.Problems == nil {
		d.Problems = map[string]string{}
	}
	d.Problems[condition] = message
}

const (
	stuckAfter = 90 * time.Second // without progress of a roll-out or a pre-flight check
	retryAfter = time.Minute      // after a failed migration or check
	keptKeys   = 2                // unused key Secrets that are not pruned
)

// decide is the decision of an operator without a defect, but for a change of the next file.
func decide(o Observed, alter func(Observed, File) File) (d Decision) {
	if o.Desired.Problem != "" {
		d.problem(KeyDegraded, o.Desired.Problem)
	}
	for _, f := range append(slices.Collect(maps.Values(o.Deployed)), o.Target) {
		for id := range f.Fingerprints {
			if _, ok := o.Key(id); !ok {
				d.problem(StateDegraded, fmt.Sprintf("the Secret of key %d is missing, and an encryption configuration has the key: restore the Secret", id))
				return d
			}
		}
	}
	revision, missing := o.converged()
	if missing != "" {
		if d.repeat(o); d.Step.Do == "" {
			d.rollout(o, missing)
		}
		return d
	}
	deployed := o.Deployed[revision]
	next := plan(deployed, o.Keys)
	if alter != nil {
		next = alter(o, next)
	}
	switch {
	case !next.Equal(o.Target):
		d.Step = Step{Do: WriteTarget, File: next}
	case !next.Equal(deployed):
		d.rollout(o, fmt.Sprintf("all nodes run revision %d, which does not have the new encryption configuration", revision))
	case len(o.Keys) > 0 && !o.Newest().Done():
		d.migrate(o)
	case o.needsKey():
		if d.checked(o) {
			d.Step = Step{Do: CreateKey, Key: o.nextID()}
		}
	case o.needsRefresh():
		if d.checked(o) {
			d.Step = Step{Do: UpdateKey, Key: o.Newest().ID}
		}
	case o.Preflight.Pod != nil:
		d.Step = Step{Do: EndPreflight}
	default:
		d.prune(o)
	}
	return d
}

// plan is the file that follows the deployed one: it adds keys that it lacks, or promotes the newest one, or removes what is no longer needed.
func plan(deployed File, keys []Key) File {
	if len(keys) == 0 {
		return deployed
	}
	needed := neededKeys(keys)
	newest := keys[0]
	added, promoted := false, false
	next := File{Resources: map[string]Layout{}, Fingerprints: map[int]string{}}
	for _, r := range Resources() {
		l := deployed.Layout(r)
		l.Keys, l.Identity = slices.Clone(l.Keys), true
		for _, id := range needed {
			if !slices.Contains(l.Keys, id) {
				l.Keys, added = append(l.Keys, id), true
			}
		}
		slices.SortFunc(l.Keys, func(a, b int) int { return b - a })
		next.Resources[r] = l
	}
	for _, r := range Resources() {
		if l := next.Resources[r]; !added && l.Write != newest.ID {
			l.Write, promoted = newest.ID, true
			next.Resources[r] = l
		}
	}
	for _, r := range Resources() {
		l := next.Resources[r]
		if !added && !promoted && newest.Done() {
			l.Keys = slices.DeleteFunc(l.Keys, func(id int) bool { return !slices.Contains(needed, id) })
			next.Resources[r] = l
		}
	}
	return fingerprinted(next, keys)
}

// fingerprinted is a file with what the key Secrets have now.
func fingerprinted(f File, keys []Key) File {
	f.Fingerprints = map[int]string{}
	for _, k := range keys {
		if f.Has(k.ID) {
			f.Fingerprints[k.ID] = k.Fingerprint
		}
	}
	return f
}

// neededKeys are those under which objects may be stored, from the newest to the last that is migrated, and the one before that.
func neededKeys(keys []Key) (ids []int) {
	done := false
	for _, k := range keys {
		ids = append(ids, k.ID)
		if done {
			break
		}
		done = k.Done()
	}
	return ids
}

// rollout waits for pods. A plugin's configuration that keeps them from starting can be replaced meanwhile: that changes no provider.
func (d *Decision) rollout(o Observed, missing string) {
	if !o.pending() { // a pod is away, and nothing depends on it
		return
	}
	d.wait(ForRollout, missing)
	if len(o.Target.Resources) > 0 {
		if refreshed := fingerprinted(o.Target, o.Keys); !refreshed.Equal(o.Target) {
			d.Step = Step{Do: WriteTarget, File: refreshed}
		} else if o.needsRefresh() && d.checked(o) {
			d.Step = Step{Do: UpdateKey, Key: o.Newest().ID}
		}
	}
	if d.Step.Do == "" && o.Waiting == ForRollout && o.Waited > stuckAfter {
		d.problem(StateDegraded, fmt.Sprintf("the roll-out has made no progress for %s: %s", stuckAfter, missing))
	}
}

// pending reports whether a switch or a roll-out is under way, or is to begin.
func (o Observed) pending() bool {
	if n := o.Newest(); n.ID != 0 && !n.Done() || o.needsKey() && o.Desired.Problem == "" || o.needsRefresh() {
		return true
	}
	return slices.ContainsFunc(slices.Collect(maps.Values(o.Deployed)), func(f File) bool { return !f.Equal(o.Target) })
}

func (o Observed) needsKey() bool {
	switch newest := o.Newest(); {
	case newest.ID == 0:
		return o.Desired.Mode != Identity
	case newest.Mode != o.Desired.Mode:
		return true
	default:
		return newest.Mode == KMS && newest.Provider != o.Desired.Provider
	}
}

func (o Observed) needsRefresh() bool {
	n := o.Newest()
	return n.Mode == KMS && o.Desired.Mode == KMS && n.Provider == o.Desired.Provider && o.Desired.Problem == "" && n.Fingerprint != o.Desired.Fingerprint
}

// migrate rewrites the resources under the newest key.
func (d *Decision) migrate(o Observed) {
	newest := o.Newest()
	for _, r := range Resources() {
		m, ok := o.Migrations[r]
		switch {
		case slices.Contains(newest.Migrated, r):
			continue
		case !ok:
			d.Step = Step{Do: StartMigration, Key: newest.ID, Resource: r}
		case m.Key != newest.ID:
			d.Step = Step{Do: DropMigration, Resource: r}
		case m.Succeeded:
			d.Step = Step{Do: MarkMigrated, Key: newest.ID, Resource: r}
		case m.Failed:
			d.problem(MigrationDegraded, fmt.Sprintf("the migration of %s to key %d failed: %s", r, newest.ID, m.Message))
			if o.Now.Sub(m.At) > retryAfter {
				d.Step = Step{Do: DropMigration, Resource: r}
			}
		}
		if d.Step.Do != "" {
			return
		}
	}
	d.wait(ForMigration, fmt.Sprintf("resources are being migrated to key %d", newest.ID))
}

// repeat gives up what was migrated, or is being migrated, while not all nodes run the same revision: a pod of an older one writes under an older key.
func (d *Decision) repeat(o Observed) {
	for _, k := range o.Keys {
		outdated := o.outdated(k)
		for _, r := range Resources() {
			if m, ok := o.Migrations[r]; ok && m.Key == k.ID && (outdated || !k.Done()) {
				d.Step = Step{Do: DropMigration, Resource: r}
				return
			}
		}
		if outdated {
			d.Step = Step{Do: ForgetMigrated, Key: k.ID}
			return
		}
	}
}

// outdated reports whether a node writes a resource that was migrated to a key with an older one.
func (o Observed) outdated(k Key) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(o.Deployed)), func(f File) bool {
		return slices.ContainsFunc(k.Migrated, func(r string) bool { return f.Layout(r).Write < k.ID })
	})
}

// checked reports whether the desired encryption may be used. For a KMS, it runs the pre-flight check first.
func (d *Decision) checked(o Observed) bool {
	p, hash := o.Preflight, o.Desired.Hash
	if o.Desired.Mode == KMS && o.Desired.Problem == "" && p.Hash == hash && !p.OK {
		d.problem(PreflightDegraded, "the pre-flight check failed and is repeated")
	}
	switch {
	case o.Desired.Problem != "":
		return false
	case o.Desired.Mode != KMS:
		return true
	case p.Pod != nil && p.Pod.Hash != hash:
		d.Step = Step{Do: EndPreflight}
	case p.Asked != hash:
		d.Step = Step{Do: AskPreflight, Hash: hash}
	case p.Hash == hash && p.OK:
		if p.Pod == nil {
			return true
		}
		d.Step = Step{Do: EndPreflight}
	case p.Pod == nil:
		d.Step = Step{Do: StartPreflight, Hash: hash, Key: o.nextID()}
	case p.Pod.Reported && (p.Hash != hash || p.OK != p.Pod.OK):
		d.Step = Step{Do: RecordPreflight, Hash: hash, OK: p.Pod.OK, RemoteKeyID: p.Pod.RemoteKeyID}
	case p.Pod.Reported || p.Pod.Failed:
		d.problem(PreflightDegraded, "the pre-flight check failed: "+p.Pod.Message)
		d.retryPreflight(o)
	default:
		if o.Waiting == ForPreflight && o.Waited > stuckAfter {
			d.problem(PreflightDegraded, fmt.Sprintf("the pre-flight pod has not reported a result for %s", stuckAfter))
		}
		d.wait(ForPreflight, "the pre-flight check runs")
	}
	return false
}

// retryPreflight deletes the pod of a check that failed a while ago: the remote KMS may be back.
func (d *Decision) retryPreflight(o Observed) {
	if o.Waiting == ForPreflight && o.Waited > retryAfter {
		d.Step = Step{Do: EndPreflight}
		return
	}
	d.wait(ForPreflight, "the pre-flight check failed and will be repeated")
}

// prune deletes the oldest key Secret that no file has, unless it is one of those that are kept.
func (d *Decision) prune(o Observed) {
	var unused []int
	for _, k := range o.Keys {
		if !o.Target.Has(k.ID) && !slices.ContainsFunc(slices.Collect(maps.Values(o.Deployed)), func(f File) bool { return f.Has(k.ID) }) {
			unused = append(unused, k.ID)
		}
	}
	if len(unused) > keptKeys {
		d.Step = Step{Do: PruneKey, Key: unused[len(unused)-1]}
	}
}

// stage is where a switch is; empty where none is under way.
func (d Decision) stage(o Observed) string {
	file := o.Target
	switch d.Step.Do {
	case CreateKey, UpdateKey, AskPreflight, StartPreflight, RecordPreflight:
		return "PreparingKey"
	case StartMigration, DropMigration, MarkMigrated, ForgetMigrated:
		return "Migrating"
	case WriteTarget:
		file = d.Step.File
	case EndPreflight, PruneKey:
		return ""
	}
	switch newest := o.Newest(); {
	case d.Waiting == ForPreflight:
		return "PreparingKey"
	case d.Waiting == ForMigration:
		return "Migrating"
	case d.Step.Do == "" && d.Waiting == "":
		return ""
	case newest.ID == 0:
		return "RollingOut"
	case newest.Done():
		return "RemovingOldKeys"
	case file.Layout(Resources()[0]).Write == newest.ID:
		return "PromotingWriteKey"
	default:
		return "DistributingReadKey"
	}
}

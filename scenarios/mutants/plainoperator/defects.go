package plainoperator

import (
	"maps"
	"slices"
)

// Defect is one mistake of an operator.
type Defect struct {
	// Name is the value of --defect. Mistake is the real one that it stands for.
	Name, Mistake string
	// Breaks is the rule of the package's model that catches it; empty: only a real API shows it.
	Breaks string
	// Scenario of the catalogue brings it out, and Caught is what must fail there.
	Scenario string
	Caught   []string
	// Seen: it was. Without it both are expectations that nothing verifies.
	Seen bool
	// NotOnKind is why the mistake makes no difference where pods are replaced; empty: it does, or nobody has tried.
	NotOnKind string
	// Replaces: conditions are written with an update of the whole list.
	Replaces bool
	wrong    func() hooks
}

// hooks are where a defect changes the operator. Each defect has one of them, or two where it remembers something.
type hooks struct {
	see    func(*Observed)           // what was read
	plan   func(Observed, File) File // the next file
	decide func(Observed, *Decision) // the decision
	report func([]Condition)         // the conditions
	render func(*configuration)      // the file, as kube-apiserver gets it
	plugin func(*Plugin)             // the plugin's configuration, as it is read
}

// Rules of the model that judge an operator.
const (
	Readable     = "READABLE"       // no node is without a key that an object is stored under
	WriteKeyRead = "WRITE-KEY-READ" // no node writes with a key that another node cannot read
	MigratedTrue = "MIGRATED-TRUE"  // a resource that is marked as migrated has no object under another key
	KeyKept      = "KEY-KEPT"       // a key that a file has, or an object is stored under, has its Secret
	KeyIDOnce    = "KEY-ID-ONCE"    // a keyID has one material for ever
	OneAtATime   = "ONE-AT-A-TIME"  // a key is made when the newest is migrated and not what is requested
	Checked      = "PREFLIGHT"      // a key of a KMS is made when its configuration has passed the check
	Truthful     = "ENCRYPTED-TRUE" // Encrypted is True only while no object is in clear text
	Visible      = "VISIBLE"        // a condition is bad while something keeps the operator from its work
	AsRequested  = "AS-REQUESTED"   // at rest, all objects are stored as is requested
)

// sees, plans, decides, reports and renders make a defect of one hook without memory.
func sees(f func(*Observed)) func() hooks            { return func() hooks { return hooks{see: f} } }
func plans(f func(Observed, File) File) func() hooks { return func() hooks { return hooks{plan: f} } }
func decides(f func(Observed, *Decision)) func() hooks {
	return func() hooks { return hooks{decide: f} }
}
func renders(f func(*configuration)) func() hooks { return func() hooks { return hooks{render: f} } }

// silent hides one condition's problem.
func silent(condition string) func() hooks {
	return func() hooks {
		return hooks{report: func(all []Condition) {
			for i := range all {
				if all[i].Type == condition {
					all[i] = Condition{condition, "False", "AsExpected", ""}
				}
			}
		}}
	}
}

// everywhere changes the layout of each resource.
func everywhere(f File, change func(Layout) Layout) File {
	f.Resources = maps.Clone(f.Resources)
	for r, l := range f.Resources {
		f.Resources[r] = change(l)
	}
	return f
}

// Only is a file with one key, which writes.
func Only(k Key) File {
	f := File{Resources: map[string]Layout{}}
	for _, r := range Resources() {
		f.Resources[r] = Layout{Write: k.ID, Keys: []int{k.ID}, Identity: true}
	}
	return fingerprinted(f, []Key{k})
}

// Defects are all of them. The good operator is the zero Defect.
func Defects() []Defect {
	const roundTrip, middle, first, toKMS = "operator-keys-of-api-servers", "operator-changes-its-mind", "operator-initial-configuration", "operator-kms-to-kms"
	return []Defect{
		{Name: "promotes-before-the-roll-out", Seen: true, Breaks: WriteKeyRead, Scenario: roundTrip, Caught: []string{"SWITCH-ORDER"},
			Mistake: "the Secret that was written taken for what runs: the read key is promoted before any node has it",
			wrong: decides(func(o Observed, d *Decision) {
				if d.Waiting == ForRollout && o.Target.Has(o.Newest().ID) && o.Target.Layout("secrets").Write != o.Newest().ID {
					d.Step = Step{Do: WriteTarget, File: everywhere(o.Target, func(l Layout) Layout { l.Write = o.Newest().ID; return l })}
				}
			})},
		{Name: "one-node-is-enough", Seen: true, Breaks: WriteKeyRead, Scenario: roundTrip, Caught: []string{"SWITCH-ORDER"},
			Mistake: "the first pod of the new revision settles it: the others cannot read what the next revision writes",
			wrong: sees(func(o *Observed) {
				top := newestRevision(o.Pods)
				o.Pods = slices.DeleteFunc(slices.Clone(o.Pods), func(p Pod) bool { return p.Revision < top })
				o.Nodes = nodesOf(o.Pods)
			})},
		{Name: "newest-revision-wins", Seen: true, Breaks: WriteKeyRead, Scenario: roundTrip, Caught: []string{"SWITCH-ORDER"},
			Mistake: "the highest revision among the pods, in place of the one that they have in common",
			wrong: sees(func(o *Observed) {
				top := newestRevision(o.Pods)
				o.Pods = slices.Clone(o.Pods)
				for i := range o.Pods {
					o.Pods[i].Revision = top
				}
			})},
		{Name: "unready-pods-count", Seen: true, Breaks: MigratedTrue, Scenario: roundTrip, Caught: []string{"SWITCH-ORDER"},
			Mistake:   "a pod's label says its revision, and its readiness is not read: the API server of before still serves",
			NotOnKind: "the API server of before ends before the kubelet shows the pod of the next revision",
			wrong: sees(func(o *Observed) {
				o.Pods = slices.Clone(o.Pods)
				for i := range o.Pods {
					o.Pods[i].Ready = true
				}
			})},
		{Name: "nodes-without-pods-count", Breaks: WriteKeyRead, Scenario: roundTrip, Caught: []string{"SWITCH-ORDER"},
			Mistake: "a loop over the pods in place of the nodes: a node whose pod is being replaced is not waited for",
			wrong:   sees(func(o *Observed) { o.Nodes = nodesOf(o.Pods) })},
		{Name: "nodes-listed-once", Breaks: WriteKeyRead, Scenario: "operator-node-added-during-a-switch", Caught: []string{"SWITCH-ORDER"},
			Mistake: "the nodes as they were at the start: one that joins later is not waited for",
			wrong: func() hooks {
				var first []string
				return hooks{see: func(o *Observed) {
					if len(first) == 0 {
						first = o.Nodes
					}
					o.Nodes = first
					o.Pods = slices.DeleteFunc(slices.Clone(o.Pods), func(p Pod) bool { return !slices.Contains(first, p.Node) })
				}}
			}},
		{Name: "adds-and-promotes-at-once", Seen: true, Breaks: WriteKeyRead, Scenario: roundTrip, Caught: []string{"SWITCH-ORDER"},
			Mistake: "two steps in one revision, to spare a roll-out: the first node that has it writes what the others cannot read",
			wrong: plans(func(o Observed, f File) File {
				return everywhere(f, func(l Layout) Layout { l.Write = o.Newest().ID; return l })
			})},
		{Name: "old-key-dropped-at-the-promotion", Breaks: Readable, Scenario: roundTrip, Caught: []string{"SWITCH-ORDER", "NO-DATA-LOSS"},
			Mistake: "a file with the write key alone: nothing that is stored under the old key can be read until it is migrated, and then it cannot be migrated",
			wrong: plans(func(o Observed, f File) File {
				return everywhere(f, func(l Layout) Layout {
					if l.Write != 0 && l.Write == o.Newest().ID {
						l.Keys = []int{l.Write}
					}
					return l
				})
			})},
		{Name: "old-key-dropped-while-nodes-write-with-it", Breaks: Readable, Scenario: roundTrip, Caught: []string{"SWITCH-ORDER"},
			Mistake: "the last file of a switch written as soon as the promotion is: nodes of the revision before still write with the old key",
			wrong: decides(func(o Observed, d *Decision) {
				if n := o.Newest(); d.Waiting == ForRollout && n.ID != 0 && o.Target.Layout("secrets").Write == n.ID && len(o.Target.Fingerprints) > 1 {
					d.Step = Step{Do: WriteTarget, File: Only(n)}
				}
			})},
		{Name: "identity-fallback-lost", Seen: true, Breaks: Readable, Scenario: first, Caught: []string{"SWITCH-ORDER", "NO-DATA-LOSS"},
			Mistake: "no identity provider behind the keys, since everything is to be encrypted: what is still in clear text cannot be read",
			wrong: plans(func(o Observed, f File) File {
				return everywhere(f, func(l Layout) Layout { l.Identity = l.Write == 0; return l })
			})},
		{Name: "disabled-at-once", Breaks: Readable, Scenario: toKMS, Caught: []string{"SWITCH-ORDER", "NO-DATA-LOSS"},
			Mistake: "type identity taken for no encryption configuration: everything that is stored under a key cannot be read",
			wrong: plans(func(o Observed, f File) File {
				if o.Desired.Mode != Identity || len(f.Resources) == 0 {
					return f
				}
				return everywhere(File{Resources: f.Resources, Fingerprints: map[int]string{}}, func(Layout) Layout { return Layout{Identity: true} })
			})},
		{Name: "restart-begins-anew", Breaks: Readable, Scenario: "operator-killed-in-a-switch", Caught: []string{"SWITCH-ORDER", "NO-DATA-LOSS"},
			Mistake: "a configuration made from the newest key at the start, before the deployed one is read: a restart in the middle of a switch drops the old key",
			wrong: decides(func(o Observed, d *Decision) {
				if n := o.Newest(); o.First && n.ID != 0 {
					d.Step = Step{Do: WriteTarget, File: Only(n)}
				}
			})},
		{Name: "identity-first-for-configmaps", Breaks: MigratedTrue, Scenario: first, Caught: []string{"before.expect"},
			Mistake: "a table of resources with an omission: configmaps are written in clear text for ever, and everything reports success",
			wrong: plans(func(o Observed, f File) File {
				f = everywhere(f, func(l Layout) Layout { return l })
				if l, ok := f.Resources["configmaps"]; ok {
					l.Write = 0
					f.Resources["configmaps"] = l
				}
				return f
			})},
		{Name: "migrates-before-the-roll-out", Breaks: MigratedTrue, Scenario: roundTrip, Caught: []string{"NO-DATA-LOSS"},
			Mistake: "a migration that starts when the promotion is written: nodes rewrite everything under the old key, and the key goes with the next switch",
			wrong: decides(func(o Observed, d *Decision) {
				if n := o.Newest(); d.Waiting == ForRollout && n.ID != 0 && o.Target.Layout("secrets").Write == n.ID && !n.Done() {
					d.migrate(o)
				}
			})},
		{Name: "migrated-when-requested", Breaks: MigratedTrue, Scenario: roundTrip, Caught: []string{"NO-DATA-LOSS"},
			Mistake: "a migration that counts when its object exists: keys are dropped while objects are stored under them",
			wrong:   migrations(func(_ Observed, m *Migration) { m.Succeeded = true })},
		{Name: "failed-migration-counts", Breaks: MigratedTrue, Caught: []string{"NO-DATA-LOSS"},
			Mistake: "a migration that has ended taken for one that has succeeded",
			wrong:   migrations(func(_ Observed, m *Migration) { m.Succeeded = m.Succeeded || m.Failed })},
		{Name: "older-pod-in-a-migration", Seen: true, Breaks: MigratedTrue, Scenario: "operator-rollback-during-kms-to-kms", Caught: []string{"NO-DATA-LOSS"},
			Mistake: "a migration that succeeded is taken as it is, also when a pod of an older revision served meanwhile and wrote with the key of before",
			wrong: decides(func(o Observed, d *Decision) {
				if _, missing := o.converged(); missing != "" && (d.Step.Do == DropMigration || d.Step.Do == ForgetMigrated) {
					d.Step = Step{}
				}
			})},
		{Name: "last-migration-counts", Breaks: MigratedTrue, Scenario: roundTrip, Caught: []string{"NO-DATA-LOSS"},
			Mistake: "the write key's annotation is not read: the success of the switch before passes for that of this one",
			wrong: decides(func(o Observed, d *Decision) {
				if m := o.Migrations[d.Step.Resource]; d.Step.Do == DropMigration && m.Key != o.Newest().ID && m.Succeeded {
					d.Step = Step{Do: MarkMigrated, Key: o.Newest().ID, Resource: d.Step.Resource}
				}
			})},
		{Name: "configmaps-not-migrated", Breaks: MigratedTrue, Scenario: roundTrip, Caught: []string{"NO-DATA-LOSS"},
			Mistake: "the resources are a constant, and configmaps were added to the encryption later: secrets alone are migrated, and both are marked",
			wrong: decides(func(o Observed, d *Decision) {
				if d.Step.Resource == "configmaps" {
					d.Step = Step{Do: MarkMigrated, Key: o.Newest().ID, Resource: "configmaps"}
				}
			})},
		{Name: "new-key-on-every-pass", Breaks: OneAtATime, Scenario: first, Caught: []string{"after.expect"},
			Mistake: "the desired state compared with a field that the API server defaults: it always differs, and a switch follows the other",
			wrong: decides(func(o Observed, d *Decision) {
				if d.Step.Do == "" && d.Waiting == "" && len(o.Keys) > 0 && o.Desired.Problem == "" {
					d.Step = Step{Do: CreateKey, Key: o.nextID()}
				}
			})},
		{Name: "key-id-reused", Breaks: KeyIDOnce, Scenario: roundTrip, Caught: []string{"SWITCH-ORDER", "NO-DATA-LOSS"},
			Mistake: "one key Secret that is overwritten with new material: what was stored under the old one is lost",
			wrong: decides(func(o Observed, d *Decision) {
				if d.Step.Do == CreateKey {
					d.Step.Key, d.Step.Replace = max(1, o.Newest().ID), true
				}
			})},
		{Name: "stale-list-of-keys", Breaks: OneAtATime, Scenario: roundTrip, Caught: []string{"before.expect"},
			Mistake: "keys from a cache that lags behind, and the next free name when the name is taken: one request makes several keys",
			wrong:   staleKeys},
		{Name: "request-taken-up-in-the-middle", Breaks: OneAtATime, Scenario: middle, Caught: []string{"SWITCH-ORDER"},
			Mistake: "a new request answered at once: the next key is made while objects are stored under two others",
			wrong: decides(func(o Observed, d *Decision) {
				if len(o.Keys) > 0 && !o.Newest().Done() && o.needsKey() && d.Step.Do == "" && d.checked(o) {
					d.Step = Step{Do: CreateKey, Key: o.nextID()}
				}
			})},
		{Name: "request-forgotten", Breaks: AsRequested, Scenario: middle, Caught: []string{"after.expect"},
			Mistake: "edges in place of levels: a request that came during a switch was seen, could not be carried out, and is not looked at again",
			wrong:   forgets},
		{Name: "other-kms-key-ignored", Breaks: AsRequested, Scenario: toKMS, Caught: []string{"after.expect"},
			Mistake: "types are compared and providers are not: from one KMS key to another nothing happens",
			wrong: sees(func(o *Observed) {
				if n := o.Newest(); n.Mode == KMS && o.Desired.Mode == KMS {
					o.Desired.Provider, o.Desired.Fingerprint = n.Provider, n.Fingerprint
				}
			})},
		{Name: "keys-in-use-pruned", Breaks: KeyKept, Scenario: "operator-prunes", Caught: []string{"NO-DATA-LOSS"},
			Mistake: "every key Secret but the newest is pruned after a migration, and the configuration still has one of them",
			wrong: decides(func(o Observed, d *Decision) {
				if n := len(o.Keys); n > 1 && o.Newest().Done() && d.Step.Do == "" {
					d.Step = Step{Do: PruneKey, Key: o.Keys[n-1].ID}
				}
			})},
		{Name: "newest-key-pruned", Breaks: KeyKept, Scenario: "operator-prunes", Caught: []string{"NO-DATA-LOSS"},
			Mistake: "the list of key Secrets sorted the other way round: the one that everything is stored under goes",
			wrong: decides(func(o Observed, d *Decision) {
				if d.Step.Do == "" && d.Waiting == "" && len(o.Keys) > 2 {
					d.Step = Step{Do: PruneKey, Key: o.Newest().ID}
				}
			})},
		{Name: "pre-flight-ignored", Breaks: Checked, Scenario: "operator-preflight-fails", Caught: []string{"steps[0].expect"},
			Mistake: "the key is made while the check runs, since it passes nearly always",
			wrong:   sees(func(o *Observed) { o.Preflight = Preflight{Asked: o.Desired.Hash, Hash: o.Desired.Hash, OK: true} })},
		{Name: "pre-flight-of-another-configuration", Breaks: Checked, Scenario: "operator-preflight-fails", Caught: []string{"steps[0].expect"},
			Mistake: "the result is read and its hash is not: the success of the configuration before passes for that of this one",
			wrong: sees(func(o *Observed) {
				if o.Preflight.OK && o.Desired.Hash != "" {
					o.Preflight.Asked, o.Preflight.Hash = o.Desired.Hash, o.Desired.Hash
				}
			})},
		{Name: "encrypted-when-requested", Breaks: Truthful, Scenario: first, Caught: []string{"steps[0].expect"},
			Mistake: "Encrypted says what the configuration requests, not what is stored",
			wrong: func() hooks {
				requested := false
				return hooks{see: func(o *Observed) { requested = o.Desired.Mode != Identity }, report: func(all []Condition) {
					if requested {
						all[0] = Condition{Encrypted, "True", "EncryptionCompleted", "all resources are encrypted"}
					}
				}}
			}},
		{Name: "refused-write-not-reported", Breaks: Visible, Caught: []string{StateDegraded},
			Mistake: "a refused write is logged and tried again: nobody who reads the conditions learns that nothing happens",
			wrong:   silent(StateDegraded)},
		{Name: "missing-credential-not-reported", Breaks: Visible, Scenario: "operator-credentials-missing", Caught: []string{KeyDegraded},
			Mistake: "a Secret that is not there yet is waited for, without a word",
			wrong:   silent(KeyDegraded)},
		{Name: "failed-migration-not-reported", Breaks: Visible, Caught: []string{MigrationDegraded},
			Mistake: "a failed migration is repeated, without a word",
			wrong:   silent(MigrationDegraded)},
		{Name: "failed-pre-flight-not-reported", Breaks: Visible, Scenario: "operator-preflight-fails", Caught: []string{PreflightDegraded},
			Mistake: "a failed check is repeated, without a word",
			wrong:   silent(PreflightDegraded)},
		{Name: "conditions-replaced", Replaces: true, Scenario: first, Caught: []string{"OWNERSHIP"},
			Mistake: "the list of conditions is updated as a whole, with the operator's own: those of reporters and of the aggregator are removed"},
		{Name: "provider-names-shared", Scenario: first, Caught: []string{StateDegraded, "before.expect"},
			Mistake: "one name for the KMS provider of both resources, which kube-apiserver refuses: the roll-out does not end",
			wrong: renders(func(c *configuration) {
				for _, r := range c.Resources {
					for _, p := range r.Providers {
						if p.KMS != nil {
							id, _ := p.key()
							p.KMS.Name = id
						}
					}
				}
			})},
		{Name: "placeholder-writes", Scenario: toKMS, Caught: []string{"after.expect"},
			Mistake: "the placeholder of an identity key in its place among the providers, before identity: everything is stored under a key of zeroes",
			wrong: renders(func(c *configuration) {
				for _, r := range c.Resources {
					i := slices.IndexFunc(r.Providers, provider.placeholder)
					if i > 0 && r.Providers[0].Identity != nil {
						r.Providers[0], r.Providers[i] = r.Providers[i], r.Providers[0]
					}
				}
			})},
		{Name: "credentials-not-carried", Scenario: first, Caught: []string{PreflightDegraded, "before.expect"},
			Mistake: "the plugin's configuration is copied and what it refers to is not: no plugin can log in",
			wrong:   func() hooks { return hooks{plugin: func(p *Plugin) { p.Credentials = nil }} }},
	}
}

func newestRevision(pods []Pod) (top int) {
	for _, p := range pods {
		top = max(top, p.Revision)
	}
	return top
}

func nodesOf(pods []Pod) (nodes []string) {
	for _, p := range pods {
		nodes = append(nodes, p.Node)
	}
	return nodes
}

func migrations(change func(Observed, *Migration)) func() hooks {
	return sees(func(o *Observed) {
		o.Migrations = maps.Clone(o.Migrations)
		for r, m := range o.Migrations {
			change(*o, &m)
			o.Migrations[r] = m
		}
	})
}

// staleKeys has the keys of five passes before, until they are as old as that.
func staleKeys() hooks {
	var past [][]Key
	next := 0
	return hooks{
		see: func(o *Observed) {
			next = o.nextID()
			past = append(past, o.Keys)
			if len(past) > 5 {
				past = past[1:]
			}
			if len(past[0]) > 0 || len(o.Keys) == 1 {
				o.Keys = past[0]
			}
		},
		decide: func(_ Observed, d *Decision) {
			if d.Step.Do == CreateKey {
				d.Step.Key = next
			}
		},
	}
}

// forgets compares each request with that of the pass before, and carries a new one out or never.
func forgets() hooks {
	var before, ignored Desired
	return hooks{see: func(o *Observed) {
		if o.Desired != before && len(o.Keys) > 0 && !o.Newest().Done() {
			ignored = o.Desired
		} else if o.Desired != before {
			ignored = Desired{}
		}
		before = o.Desired
		if n := o.Newest(); o.Desired == ignored && n.ID != 0 {
			o.Desired = Desired{Mode: n.Mode, Provider: n.Provider, Fingerprint: n.Fingerprint}
		}
	}}
}

package plainoperator

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// key is a migrated key, unless it is the newest of those under way.
func key(id int, m Mode, migrated ...string) Key {
	k := Key{ID: id, Mode: m, Fingerprint: strings.Repeat("f", id), Migrated: migrated}
	if m == KMS {
		k.Provider = "kek"
	}
	return k
}

func file(write int, keys ...int) File {
	f := File{Resources: map[string]Layout{}, Fingerprints: map[int]string{}}
	for _, r := range Resources() {
		f.Resources[r] = Layout{Write: write, Keys: keys, Identity: true}
	}
	for _, id := range keys {
		f.Fingerprints[id] = strings.Repeat("f", id)
	}
	return f
}

// at is a cluster of two nodes that run revision 5 with a file, which is also the target.
func at(f File, desired Desired, keys ...Key) Observed {
	return Observed{Now: time.Unix(1e9, 0), Desired: desired, Keys: keys, Target: f, Deployed: map[int]File{5: f}, Nodes: []string{"a", "b"},
		Pods: []Pod{{Node: "a", Revision: 5, Ready: true}, {Node: "b", Revision: 5, Ready: true}}}
}

func with(o Observed, change func(*Observed)) Observed {
	change(&o)
	return o
}

var (
	identity = Desired{Mode: Identity}
	aes      = Desired{Mode: AESCBC}
	vault    = Desired{Mode: KMS, Provider: "kek", Fingerprint: "ff", Hash: "h"}
	both     = []string{"secrets", "configmaps"}
)

func TestDecide(t *testing.T) {
	old, newer, done := key(1, AESCBC, both...), key(2, KMS), key(2, KMS, both...)
	switching := at(file(1, 2, 1), vault, newer, old)
	migrating := at(file(2, 2, 1), vault, newer, old)
	check := func(p Preflight) Observed {
		return with(at(file(1, 1), vault, old), func(o *Observed) { o.Preflight = p })
	}
	for name, c := range map[string]struct {
		seen Observed
		want Decision // Message and Problems are compared by what they contain
	}{
		"nothing is requested": {at(File{}, identity), Decision{}},
		"the first key":        {at(File{}, aes), Decision{Step: Step{Do: CreateKey, Key: 1}}},
		"no node":              {with(at(File{}, aes), func(o *Observed) { o.Nodes = nil }), Decision{Waiting: ForRollout, Message: "no node"}},
		"the first read key":   {at(File{}, aes, key(1, AESCBC)), Decision{Step: Step{Do: WriteTarget, File: file(0, 1)}}},
		"a read key":           {at(file(1, 1), vault, newer, old), Decision{Step: Step{Do: WriteTarget, File: file(1, 2, 1)}}},
		"the target is not rolled out yet": {with(at(file(1, 1), vault, newer, old), func(o *Observed) { o.Target = file(1, 2, 1) }),
			Decision{Waiting: ForRollout, Message: "revision 5"}},
		"one node is on the next revision": {with(switching, func(o *Observed) { o.Pods = []Pod{{"a", 5, true, false}, {"b", 6, true, false}} }),
			Decision{Waiting: ForRollout, Message: "revisions 5 and 6"}},
		"a node without a pod": {with(switching, func(o *Observed) { o.Pods = o.Pods[:1] }), Decision{Waiting: ForRollout, Message: "node b has no running pod"}},
		"a pod that is not ready": {with(switching, func(o *Observed) { o.Pods = []Pod{{"a", 5, true, false}, {"b", 5, false, false}} }),
			Decision{Waiting: ForRollout, Message: "not ready"}},
		"a failed pod of the next revision": {with(switching, func(o *Observed) { o.Pods = append(o.Pods[:2:2], Pod{"b", 6, false, true}) }),
			Decision{Waiting: ForRollout, Message: "has failed"}},
		"an old pod that has ended": {with(switching, func(o *Observed) { o.Pods = append(o.Pods[:2:2], Pod{"b", 4, false, true}) }),
			Decision{Step: Step{Do: WriteTarget, File: file(2, 2, 1)}}},
		"a roll-out that is stuck": {with(switching, func(o *Observed) { o.Pods, o.Waiting, o.Waited = o.Pods[:1], ForRollout, 3*time.Minute }),
			Decision{Waiting: ForRollout, Message: "node b", Problems: map[string]string{StateDegraded: "no progress"}}},
		"a stuck roll-out whose plugin gets other credentials": {with(switching, func(o *Observed) {
			o.Pods, o.Desired.Fingerprint, o.Preflight = o.Pods[:1], "new", Preflight{Asked: "h", Hash: "h", OK: true}
		}), Decision{Step: Step{Do: UpdateKey, Key: 2}, Waiting: ForRollout, Message: "node b"}},
		"a pod is away during a migration": {with(migrating, func(o *Observed) {
			o.Pods, o.Migrations = o.Pods[:1], map[string]Migration{"secrets": {Key: 2}, "configmaps": {Key: 1}}
		}), Decision{Step: Step{Do: DropMigration, Resource: "secrets"}}},
		"a pod of an older revision after a migration": {with(at(file(2, 2, 1), vault, done, old), func(o *Observed) {
			o.Deployed[4], o.Pods = file(1, 2, 1), []Pod{{"a", 5, true, false}, {"b", 4, true, false}}
		}), Decision{Step: Step{Do: ForgetMigrated, Key: 2}}},
		"a pod of an older revision that writes with the same key": {with(at(file(2, 2), vault, done, old), func(o *Observed) {
			o.Deployed[4], o.Pods = file(2, 2, 1), []Pod{{"a", 5, true, false}, {"b", 4, true, false}}
			o.Migrations = map[string]Migration{"secrets": {Key: 2, Succeeded: true}}
		}), Decision{Waiting: ForRollout, Message: "revisions 4 and 5"}},
		"a pod is away and nothing is to be done": {with(at(file(2, 2, 1), vault, done, old), func(o *Observed) { o.Pods = o.Pods[:1] }), Decision{}},
		"the promotion": {switching, Decision{Step: Step{Do: WriteTarget, File: file(2, 2, 1)}}},
		"a migration":   {migrating, Decision{Step: Step{Do: StartMigration, Key: 2, Resource: "configmaps"}}},
		"the other migration": {with(migrating, func(o *Observed) { o.Migrations = map[string]Migration{"configmaps": {Key: 2}} }),
			Decision{Step: Step{Do: StartMigration, Key: 2, Resource: "secrets"}}},
		"the object of the last migration": {with(migrating, func(o *Observed) { o.Migrations = map[string]Migration{"configmaps": {Key: 1, Succeeded: true}} }),
			Decision{Step: Step{Do: DropMigration, Resource: "configmaps"}}},
		"both migrations run": {with(migrating, func(o *Observed) { o.Migrations = map[string]Migration{"configmaps": {Key: 2}, "secrets": {Key: 2}} }),
			Decision{Waiting: ForMigration, Message: "key 2"}},
		"a migration that succeeded": {with(migrating, func(o *Observed) {
			o.Migrations = map[string]Migration{"configmaps": {Key: 2}, "secrets": {Key: 2, Succeeded: true}}
		}),
			Decision{Step: Step{Do: MarkMigrated, Key: 2, Resource: "secrets"}}},
		"a migration that failed": {with(migrating, func(o *Observed) {
			o.Migrations = map[string]Migration{"configmaps": {Key: 2, Failed: true, At: o.Now}, "secrets": {Key: 2}}
		}), Decision{Waiting: ForMigration, Message: "key 2", Problems: map[string]string{MigrationDegraded: "configmaps to key 2 failed"}}},
		"a migration that failed a while ago": {with(migrating, func(o *Observed) {
			o.Migrations = map[string]Migration{"configmaps": {Key: 2, Failed: true, At: o.Now.Add(-time.Hour)}}
		}), Decision{Step: Step{Do: DropMigration, Resource: "configmaps"}, Problems: map[string]string{MigrationDegraded: "failed"}}},
		"another request waits for the migration": {with(migrating, func(o *Observed) { o.Desired = aes }), Decision{Step: Step{Do: StartMigration, Key: 2, Resource: "configmaps"}}},
		"the last old key stays":                  {at(file(2, 2, 1), vault, done, old), Decision{}},
		"older keys leave":                        {at(file(3, 3, 2, 1), aes, key(3, AESCBC, both...), done, old), Decision{Step: Step{Do: WriteTarget, File: file(3, 3, 2)}}},
		"another type":                            {at(file(2, 2, 1), aes, done, old), Decision{Step: Step{Do: CreateKey, Key: 3}}},
		"a number that only a file has": {with(at(file(2, 2, 1), aes, key(9, KMS, both...), done, old), func(o *Observed) { o.Target = file(7, 7) }),
			Decision{Problems: map[string]string{StateDegraded: "the Secret of key 7 is missing"}}},
		"a missing credential": {at(file(1, 1), Desired{Mode: KMS, Problem: "no Secret"}, old), Decision{Problems: map[string]string{KeyDegraded: "no Secret"}}},
		"other credentials": {with(at(file(2, 2, 1), vault, done, old), func(o *Observed) {
			o.Desired.Fingerprint, o.Preflight = "new", Preflight{Asked: "h", Hash: "h", OK: true}
		}), Decision{Step: Step{Do: UpdateKey, Key: 2}}},
		"the check is recorded":                   {check(Preflight{Asked: "before", Hash: "before", OK: true}), Decision{Step: Step{Do: AskPreflight, Hash: "h"}}},
		"the check starts":                        {check(Preflight{Asked: "h"}), Decision{Step: Step{Do: StartPreflight, Hash: "h", Key: 2}}},
		"the check runs":                          {check(Preflight{Asked: "h", Pod: &PreflightPod{Hash: "h"}}), Decision{Waiting: ForPreflight, Message: "runs"}},
		"the check of another configuration runs": {check(Preflight{Asked: "h", Pod: &PreflightPod{Hash: "before"}}), Decision{Step: Step{Do: EndPreflight}}},
		"the check passes": {check(Preflight{Asked: "h", Pod: &PreflightPod{Hash: "h", Reported: true, OK: true, RemoteKeyID: "id"}}),
			Decision{Step: Step{Do: RecordPreflight, Hash: "h", OK: true, RemoteKeyID: "id"}}},
		"the pod of a check that passed": {check(Preflight{Asked: "h", Hash: "h", OK: true, Pod: &PreflightPod{Hash: "h", Reported: true, OK: true}}),
			Decision{Step: Step{Do: EndPreflight}}},
		"the check has passed": {check(Preflight{Asked: "h", Hash: "h", OK: true}), Decision{Step: Step{Do: CreateKey, Key: 2}}},
		"the check failed": {check(Preflight{Asked: "h", Hash: "h", Pod: &PreflightPod{Hash: "h", Reported: true, Message: "denied"}}),
			Decision{Waiting: ForPreflight, Message: "repeated", Problems: map[string]string{PreflightDegraded: "denied"}}},
		"the pod of the check failed": {check(Preflight{Asked: "h", Pod: &PreflightPod{Hash: "h", Failed: true, Message: "no image"}}),
			Decision{Waiting: ForPreflight, Message: "repeated", Problems: map[string]string{PreflightDegraded: "no image"}}},
		"unused keys beyond those that are kept": {at(file(5, 5, 4), aes, key(5, AESCBC, both...), key(4, AESGCM, both...), key(3, AESCBC, both...), done, old),
			Decision{Step: Step{Do: PruneKey, Key: 1}}},
		"unused keys that are kept": {at(file(4, 4, 3), aes, key(4, AESCBC, both...), key(3, AESGCM, both...), done, old), Decision{}},
	} {
		got := decide(c.seen, nil)
		for condition, text := range c.want.Problems {
			if !strings.Contains(got.Problems[condition], text) {
				t.Errorf("%s: %s is %q, expected %q in it", name, condition, got.Problems[condition], text)
			}
		}
		if len(got.Problems) != len(c.want.Problems) || !strings.Contains(got.Message, c.want.Message) {
			t.Errorf("%s: message %q, expected %q in it, and problems %v", name, got.Message, c.want.Message, got.Problems)
		}
		got.Message, got.Problems, c.want.Message, c.want.Problems = "", nil, "", nil
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, c.want)
		}
	}
}

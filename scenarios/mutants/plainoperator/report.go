package plainoperator

import (
	"fmt"
	"slices"
	"strings"
)

// Types of conditions, as OpenShift's encryption controllers have them.
const (
	Encrypted            = "Encrypted"
	KeyDegraded          = "EncryptionKeyControllerDegraded"
	StateDegraded        = "EncryptionStateControllerDegraded"
	MigrationDegraded    = "EncryptionMigrationControllerDegraded"
	MigrationProgressing = "EncryptionMigrationControllerProgressing"
	PreflightDegraded    = "EncryptionKMSPreflightControllerDegraded"
	PreflightProgressing = "EncryptionKMSPreflightControllerProgressing"
	PruneDegraded        = "EncryptionPruneControllerDegraded"
)

// Condition is one condition, without its time.
type Condition struct{ Type, Status, Reason, Message string }

// report is the conditions after a decision, whose step failed unless err is nil.
func report(o Observed, d Decision, err error) []Condition {
	if err != nil {
		d.problem(owner(d.Step.Do), err.Error())
	}
	all := []Condition{encrypted(o)}
	for _, t := range []string{KeyDegraded, StateDegraded, MigrationDegraded, PreflightDegraded, PruneDegraded} {
		c := Condition{t, "False", "AsExpected", ""}
		if m, ok := d.Problems[t]; ok {
			c = Condition{t, "True", "Error", m}
		}
		all = append(all, c)
	}
	progress := func(condition, reason string) Condition {
		if reason == "" {
			return Condition{condition, "False", "AsExpected", ""}
		}
		return Condition{condition, "True", reason, d.Message}
	}
	check := ""
	if d.Waiting == ForPreflight {
		check = "RunningPreflightCheck"
	}
	return append(all, progress(MigrationProgressing, d.stage(o)), progress(PreflightProgressing, check))
}

// Unread is the conditions of a pass that could not read the cluster.
func Unread(err error) []Condition {
	all := []Condition{{StateDegraded, "True", "ReadFailed", err.Error()}}
	for _, t := range []string{Encrypted, KeyDegraded, MigrationDegraded, PreflightDegraded, PruneDegraded, MigrationProgressing, PreflightProgressing} {
		all = append(all, Condition{t, "Unknown", "ReadFailed", "the operator could not read the cluster"})
	}
	return all
}

// encrypted is judged by what nodes run. It is empty where they run different files that all encrypt: the condition stays as it was.
func encrypted(o Observed) Condition {
	revision, missing := o.converged()
	newest := o.Newest()
	switch {
	case newest.ID == 0:
		return Condition{Encrypted, "False", "EncryptionDisabled", "no encryption key exists"}
	case newest.Mode == Identity && newest.Done():
		return Condition{Encrypted, "False", "DecryptionCompleted", "all resources are stored in clear text"}
	case newest.Mode == Identity:
		return Condition{Encrypted, "False", "DecryptionInProgress", fmt.Sprintf("key %d has mode identity, and not all resources are migrated to it", newest.ID)}
	case missing != "" && o.writesClearText():
		return Condition{Encrypted, "False", "EncryptionInProgress", "not all nodes encrypt: " + missing}
	case missing != "":
		return Condition{Type: Encrypted}
	}
	for _, r := range Resources() {
		if !o.encrypts(o.Deployed[revision].Layout(r), r) {
			return Condition{Encrypted, "False", "EncryptionInProgress", r + " are not all encrypted"}
		}
	}
	return Condition{Encrypted, "True", "EncryptionCompleted", "all resources are encrypted: " + strings.Join(Resources(), ", ")}
}

// writesClearText reports whether a node stores objects of a resource in clear text.
func (o Observed) writesClearText() bool {
	for _, f := range o.Deployed {
		for _, r := range Resources() {
			if key, _ := o.Key(f.Layout(r).Write); key.ID == 0 || key.Mode == Identity {
				return true
			}
		}
	}
	return false
}

// encrypts reports whether everything of a resource is under an encrypting key: it was migrated to one since clear text could be written.
func (o Observed) encrypts(l Layout, resource string) bool {
	for _, id := range l.Keys {
		k, _ := o.Key(id)
		if k.Mode == Identity {
			return false
		}
		if slices.Contains(k.Migrated, resource) {
			return l.Write != 0
		}
	}
	return false
}

// owner is the condition that reports that an action failed.
func owner(a Action) string {
	switch a {
	case CreateKey, UpdateKey:
		return KeyDegraded
	case WriteTarget:
		return StateDegraded
	case StartMigration, DropMigration, MarkMigrated, ForgetMigrated:
		return MigrationDegraded
	case PruneKey:
		return PruneDegraded
	default:
		return PreflightDegraded
	}
}

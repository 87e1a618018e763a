package operand

import (
	"bytes"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Observed is what the objects of an operator say.
type Observed struct {
	Keys []Key
	// Desired is the configuration that the operator wants; nil before there is one.
	Desired *RollOut
	// Revision is the newest one that there is, Revisions are all. Converged reports whether every node serves with the newest, and that has what is wanted.
	Revision  int
	Revisions []int
	Converged bool
	// Ends are the nodes whose pods lose a plugin with the revision that is rolled out.
	Ends []string
}

// Stage is the stage of a switch, by the names of this project's operator (core.StagePreparing …), as the objects show it; empty at rest. What the
// operator says of itself does not count.
func (o Observed) Stage() string {
	newest := Newest(o.Keys)
	id := strconv.FormatUint(newest.ID, 10)
	switch {
	case newest.ID == 0:
		return ""
	case o.Desired == nil || !o.Desired.Reads(id):
		return core.StagePreparing
	case newest.migrated(o.Desired.Resources) && o.Converged:
		return ""
	case newest.migrated(o.Desired.Resources):
		return core.StageRemoving
	case o.Desired.Writer() != id:
		return core.StageReading
	case !o.Converged:
		return core.StageWriting
	}
	return core.StageMigrating
}

// migrated reports whether all of the resources lie under the key.
func (k Key) migrated(resources []string) bool {
	return !slices.ContainsFunc(resources, func(r string) bool { return !slices.Contains(k.Migrated, schema.ParseGroupResource(r)) })
}

// Decision is what was observed, for the history.
func (o Observed) Decision() *history.Decision {
	newest := Newest(o.Keys)
	d := &history.Decision{Key: newest.ID, Revision: o.Revision, Revisions: o.Revisions, Stage: o.Stage(), Ends: o.Ends,
		TargetKEK: newest.TargetKEK, ConvergedKEK: newest.ConvergedKEK, MigratedKEK: newest.MigratedKEK}
	for _, k := range o.Keys {
		d.Keys = append(d.Keys, k.ID)
	}
	slices.Sort(d.Keys)
	return d
}

// OwnRevision is the newest revision of this project's operator with a file; 0: there is none.
func (i *Installer) OwnRevision(file []byte) (newest int) {
	for _, s := range items[*corev1.Secret](i.sources.secrets) {
		if number, ok := i.own(s, revision.KindConfig); ok && bytes.Equal(s.Data[operator.ConfigKey], file) {
			newest = max(newest, number)
		}
	}
	return newest
}

// own is the number of a revision of this project's operator, if an object is one of a kind.
func (i *Installer) own(m metav1.Object, kind string) (number int, ok bool) {
	labels := m.GetLabels()
	number, err := strconv.Atoi(labels[revision.RevisionLabel])
	return number, err == nil && labels[revision.KindLabel] == kind && labels[revision.ComponentLabel] == string(i.Component)
}

// ownRevisions puts into a decision the revisions that this project's operator has made.
func (i *Installer) ownRevisions(d *history.Decision) {
	d.Revision, d.Revisions = 0, nil
	for _, s := range items[metav1.Object](i.sources.secrets) {
		if number, ok := i.own(s, revision.KindConfig); ok {
			d.Revision, d.Revisions = max(d.Revision, number), append(d.Revisions, number)
		}
	}
	for _, m := range items[metav1.Object](i.sources.maps) {
		if number, ok := i.own(m, revision.KindPluginConfig); ok {
			d.PluginRevision, d.PluginRevisions = max(d.PluginRevision, number), append(d.PluginRevisions, number)
		}
	}
	slices.Sort(d.Revisions)
	slices.Sort(d.PluginRevisions)
}

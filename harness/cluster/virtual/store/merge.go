package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// candidate is what a write would make of an object: the body with the resourceVersion that the writer started from.
type candidate struct {
	body   map[string]any
	owners []metav1.ManagedFieldsEntry
	// repeats is the status that was applied, if that repeats the one before: other values, and nothing else new. Else nil.
	repeats any
}

func (c candidate) metadata() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: c.body}
}

// mergers are Kubernetes' own field managers of one type, by subresource.
type mergers struct {
	typ       *Type
	converter managedfields.TypeConverter
	bySub     map[string]*managedfields.FieldManager
}

func newMergers(t *Type, converter managedfields.TypeConverter) (*mergers, error) {
	m := &mergers{typ: t, converter: converter, bySub: map[string]*managedfields.FieldManager{}}
	version := fieldpath.APIVersion(t.Kind.GroupVersion().String())
	reset := map[string]*fieldpath.Set{"": fieldpath.NewSet()}
	if t.Status { // each of the two endpoints drops what is the other's, and so owns nothing of it
		reset[""] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		reset["status"] = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
	}
	for sub, set := range reset {
		filter := map[fieldpath.APIVersion]fieldpath.Filter{version: fieldpath.NewExcludeSetFilter(set)}
		f, err := managedfields.NewDefaultCRDFieldManager(converter, identity{}, t, identity{}, t.Kind, t.Kind.GroupVersion(), sub, filter)
		if err != nil {
			return nil, fmt.Errorf("field manager of %s: %w", t.Kind.Kind, err)
		}
		m.bySub[sub] = f
	}
	return m, nil
}

func (m *mergers) of(subresource string) (*managedfields.FieldManager, error) {
	if f, ok := m.bySub[subresource]; ok {
		return f, nil
	}
	return nil, noSuchResource()
}

// apply merges an apply into a version; nil is an object that does not exist. The patch may be changed.
func (m *mergers) apply(live *Version, patch *unstructured.Unstructured, o ApplyOptions, now time.Time) (candidate, error) {
	f, err := m.of(o.Subresource)
	if err != nil {
		return candidate{}, err
	}
	from, times := m.start(live, nil)
	out, err := f.Apply(from, patch, o.Manager, o.Force)
	if err != nil {
		return candidate{}, sortCauses(internal(m.explain(err, patch)))
	}
	return finish(out.(*unstructured.Unstructured), times, now), nil
}

// update records that a manager made an object what it is.
func (m *mergers) update(live *Version, updated *unstructured.Unstructured, manager, subresource string, now time.Time) (candidate, error) {
	f, err := m.of(subresource)
	if err != nil {
		return candidate{}, err
	}
	from, times := m.start(live, updated.GetManagedFields())
	if given := updated.GetManagedFields(); len(given) > 0 {
		times.hide(given)
		updated.SetManagedFields(given)
	} else {
		updated.SetManagedFields(nil) // an empty list is none; a list of one empty entry takes everything from everybody
	}
	kept := from.GetManagedFields()
	out, err := f.Update(from, updated, manager)
	if err != nil { // the real one logs it, and keeps who owned what
		updated.SetManagedFields(kept)
		out = updated
	}
	return finish(out.(*unstructured.Unstructured), times, now), nil
}

// start is the object that a write begins with; more are other managedFields that will be merged.
func (m *mergers) start(live *Version, more []metav1.ManagedFieldsEntry) (*unstructured.Unstructured, times) {
	if live == nil {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetGroupVersionKind(m.typ.Kind)
		return o, ranked(more)
	}
	fields := slices.Clone(live.owners)
	t := ranked(append(slices.Clone(fields), more...))
	t.hide(fields)
	o := (&unstructured.Unstructured{Object: live.body}).DeepCopy()
	o.SetResourceVersion(live.ResourceVersion())
	o.SetManagedFields(fields)
	return o, t
}

func finish(o *unstructured.Unstructured, t times, now time.Time) candidate {
	fields := o.GetManagedFields()
	t.show(fields, now)
	o.SetManagedFields(nil)
	return candidate{body: o.Object, owners: fields}
}

// identity stands for conversion and creation: there is one version of each kind.
type identity struct{}

func (identity) Convert(_, _, _ any) error { return nil }
func (identity) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (identity) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
func (identity) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(kind)
	return o, nil
}

// times are the distinct times of some managedFields, in order. The merge code stamps what it changes with the machine's
// clock; while it works, the times that were there are replaced by their ranks, as seconds of 1970, so that afterwards what
// it stamped can be told from them, and they keep the order by which it merges the oldest entries.
type times []time.Time

func ranked(fields []metav1.ManagedFieldsEntry) times {
	var t times
	for _, f := range fields {
		if f.Time != nil {
			t = append(t, f.Time.Time)
		}
	}
	slices.SortFunc(t, time.Time.Compare)
	return slices.CompactFunc(t, time.Time.Equal)
}

// hide replaces times by ranks.
func (t times) hide(fields []metav1.ManagedFieldsEntry) {
	for i := range fields {
		if fields[i].Time != nil {
			rank, _ := slices.BinarySearchFunc(t, fields[i].Time.Time, time.Time.Compare)
			fields[i].Time = &metav1.Time{Time: time.Unix(int64(rank), 0).UTC()}
		}
	}
}

// show puts the times back, gives now to what was stamped, and sorts as the merge code does.
func (t times) show(fields []metav1.ManagedFieldsEntry, now time.Time) {
	now = now.UTC().Truncate(time.Second)
	for i := range fields {
		if fields[i].Time == nil {
			continue
		}
		at := now
		if rank := fields[i].Time.Unix(); rank < int64(len(t)) {
			at = t[rank]
		}
		fields[i].Time = &metav1.Time{Time: at}
	}
	slices.SortFunc(fields, compareEntries)
}

// compareEntries is the order of managedFields in an object.
func compareEntries(a, b metav1.ManagedFieldsEntry) int {
	return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(seconds(a.Time), seconds(b.Time)), cmp.Compare(a.Manager, b.Manager),
		cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource))
}

func seconds(t *metav1.Time) int64 {
	if t == nil {
		return 0
	}
	return t.Unix()
}

// sortCauses gives the causes of a conflict one order: the merge code's is that of a map.
func sortCauses(err error) error {
	var s *apierrors.StatusError
	if !errors.As(err, &s) || s.ErrStatus.Details == nil {
		return err
	}
	slices.SortStableFunc(s.ErrStatus.Details.Causes, func(a, b metav1.StatusCause) int {
		return cmp.Or(strings.Compare(a.Message, b.Message), strings.Compare(a.Field, b.Field))
	})
	return err
}

package store

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

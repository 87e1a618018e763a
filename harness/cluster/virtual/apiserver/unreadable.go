package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	storageerrors "k8s.io/apiserver/pkg/storage/errors"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
)

// What kube-apiserver does with objects that it cannot read, with the feature gate AllowUnsafeMalformedObjectDeletion (KEP-3926), which is on by default
// since Kubernetes 1.37. Its code is in etcd's store and in the generic registry, which this server has not.

// maxUnreadable is how many objects the error of a list names (maxCorruptObjErrsToAggregate).
const maxUnreadable = 100

// verbUnsafeDelete is the verb of deleting an object that cannot be read.
const verbUnsafeDelete = "unsafe-delete-ignore-read-errors"

// storeReadError names the objects of a list that cannot be read, as aggregatedStorageError of k8s.io/apiserver/pkg/storage/etcd3 does.
func storeReadError(of schema.GroupResource, unreadable []error) error {
	message := fmt.Sprintf("failed to read one or more %s from the storage: %v", of.String(), unreadable[0])
	if len(unreadable) > 1 {
		message = fmt.Sprintf("%s (and %d more)", message, len(unreadable)-1)
	}
	s := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError, Message: message,
		Details: &metav1.StatusDetails{Group: of.Group, Kind: of.Resource, Name: "list"}}
	for _, err := range unreadable {
		if at := (*storage.StorageError)(nil); errors.As(err, &at) {
			s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Field: at.Key, Message: err.Error()})
		}
	}
	if len(unreadable) == maxUnreadable {
		s.Details.Causes = append(s.Details.Causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: "too many errors, the list is truncated"})
	}
	return &apierrors.StatusError{ErrStatus: s}
}

// ignoresReadErrors reports whether a deletion has the option of KEP-3926. A body that cannot be read is refused later.
func (q *Request) ignoresReadErrors() bool {
	var o metav1.DeleteOptions
	return yaml.Unmarshal(q.Body, &o) == nil && o.IgnoreStoreReadErrorWithClusterBreakingPotential != nil && *o.IgnoreStoreReadErrorWithClusterBreakingPotential
}

// removeUnreadable deletes an object that cannot be read, without admission and whatever its finalizers.
func (s *Server) removeUnreadable(q *Request) (any, error) {
	var o metav1.DeleteOptions
	if err := yaml.Unmarshal(q.Body, &o); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := validation.ValidateDeleteOptions(&o); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	k := q.Key()
	unsafe := *q
	unsafe.Verb = verbUnsafeDelete
	if s.Authorize != nil && s.Authorize(&unsafe) != nil {
		return nil, apierrors.NewForbidden(k.Resource.GroupResource(), k.Name, fmt.Errorf("not permitted to do %q, reason: ", verbUnsafeDelete))
	}
	if s.Cluster.Object(k) != nil && s.rest.decrypt(q.HTTP.Context(), k) == nil {
		readable := storage.NewInvalidObjError(s.rest.key(k), "unsafe deletion is not allowed because the object is decodable from storage")
		return nil, storageerrors.InterpretDeleteError(readable, k.Resource.GroupResource(), k.Name)
	}
	if len(o.DryRun) == 0 && !q.dry {
		if _, err := s.Cluster.change(func(st *store.Store) (*store.Version, error) {
			v, err := st.Delete(k, store.Preconditions{})
			delete(s.Cluster.stored, k)
			return v, err
		}); err != nil {
			return nil, err
		}
	}
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusOK, Details: &metav1.StatusDetails{Name: k.Name, Kind: k.Resource.Resource}}, nil
}

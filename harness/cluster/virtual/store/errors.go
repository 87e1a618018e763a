package store

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The limits of a real control plane, in bytes.
const (
	// MaxRequestBytes is etcd's default --max-request-bytes.
	MaxRequestBytes = 3 << 19
	// MaxBodyBytes is the largest body of a request that an API server reads.
	MaxBodyBytes = 3 << 20
)

const tooLarge = "etcdserver: request is too large"

func noSuchResource() error {
	return status(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

func status(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// internal is how an API server answers with an error that is not one of its own.
func internal(err error) error {
	var known apierrors.APIStatus
	if err == nil || errors.As(err, &known) {
		return err
	}
	return status(http.StatusInternalServerError, metav1.StatusReasonUnknown, err.Error())
}

func isTooLarge(err error) bool {
	var s *apierrors.StatusError
	return errors.As(err, &s) && s.ErrStatus.Message == tooLarge
}

func (k Key) notFound() error {
	return apierrors.NewNotFound(k.Resource.GroupResource(), k.Name)
}

func (k Key) exists() error {
	return apierrors.NewAlreadyExists(k.Resource.GroupResource(), k.Name)
}

// stale is the answer to a write that was made from an older version.
func (k Key) stale() error {
	return apierrors.NewConflict(k.Resource.GroupResource(), k.Name,
		errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

func (k Key) precondition(detail string) error {
	return apierrors.NewConflict(k.Resource.GroupResource(), k.Name, fmt.Errorf("%s: %s", "Precondition failed", detail))
}

func (t *Type) invalid(name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(t.Kind.GroupKind(), name, errs)
}

func invalidKind(kind schema.GroupKind, name string, err *field.Error) error {
	return apierrors.NewInvalid(kind, name, field.ErrorList{err})
}

// checkKind refuses an object of another kind, or version, than that of the endpoint.
func (t *Type) checkKind(o *unstructured.Unstructured) error {
	if got := o.GroupVersionKind(); got != t.Kind {
		return apierrors.NewBadRequest(fmt.Sprintf("the object provided is of kind %s, expected %s", got, t.Kind))
	}
	return nil
}

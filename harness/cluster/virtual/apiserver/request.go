package apiserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	endpoints "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/cluster/virtual/network"
	"github.com/kmsharness/kmsharness/harness/cluster/virtual/store"
)

// Request is an HTTP request with what kube-apiserver's filters find out: what it is about, its user, and its options.
type Request struct {
	endpoints.RequestInfo
	HTTP *http.Request
	User user.Info
	// Body of a write.
	Body []byte

	auditing audit.RequestAuditConfig
	received time.Time
	id       network.Hash
	manager  string
	dry      bool // changes nothing
	partial  bool
	labels   labels.Selector
	fields   fields.Selector
}

// Key names the object that a request is about, or with an empty name its resource.
func (q *Request) Key() store.Key {
	return store.Key{Resource: schema.GroupVersionResource{Group: q.APIGroup, Version: q.APIVersion, Resource: q.Resource}, Namespace: q.Namespace, Name: q.Name}
}

func (q *Request) writes() bool {
	return q.IsResourceRequest && slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, q.Verb)
}

// code is that of the answer to a request that was carried out.
func (q *Request) code() int {
	if q.Verb == "create" {
		return http.StatusCreated
	}
	return http.StatusOK
}

// Field selectors know metadata.name and metadata.namespace only, as for custom resources.
func readRequest(r *http.Request) (*Request, error) {
	q := &Request{HTTP: r, User: &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}}
	info, err := (&endpoints.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}).NewRequestInfo(r)
	if info != nil {
		q.RequestInfo = *info
		if info.APIGroup == "" && info.Resource == "namespaces" { // authorization takes its name for one, storage does not
			q.Namespace = ""
		}
		q.HTTP = r.WithContext(endpoints.WithRequestInfo(r.Context(), info)) // kube-apiserver's encryption logs it
	}
	if err != nil {
		return q, apierrors.NewBadRequest(err.Error())
	}
	v := r.URL.Query()
	q.dry = v.Get("dryRun") != ""
	q.manager = cmp.Or(v.Get("fieldManager"), strings.SplitN(r.UserAgent(), "/", 2)[0], "unknown")
	q.partial = strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")
	if q.labels, err = labels.Parse(v.Get("labelSelector")); err != nil {
		return q, apierrors.NewBadRequest(err.Error())
	}
	if q.fields, err = fields.ParseSelector(v.Get("fieldSelector")); err != nil {
		return q, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range q.fields.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return q, apierrors.NewBadRequest("field label not supported: " + r.Field)
		}
	}
	return q, nil
}

// bearer is the token that a request is sent with.
func bearer(r *http.Request) (token string, has bool) {
	return strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func readBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, store.MaxBodyBytes+1))
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	case len(body) > store.MaxBodyBytes:
		return nil, apierrors.NewRequestEntityTooLargeError("limit is " + strconv.Itoa(store.MaxBodyBytes))
	}
	switch kind := r.Header.Get("Content-Type"); {
	case strings.Contains(kind, "cbor"):
		return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, r.Method, schema.GroupResource{}, "", "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, "+runtime.ContentTypeProtobuf, 0, true)
	case strings.Contains(kind, runtime.ContentTypeProtobuf):
		return fromProtobuf(body)
	}
	return body, nil
}

// nameIn is the name of the object in a body; empty: it has none.
func nameIn(body []byte) string {
	var o metav1.PartialObjectMetadata
	_ = json.Unmarshal(body, &o) // what reads the object says what is wrong with it
	return o.Name
}

// fromProtobuf is the JSON of an object that client-go's typed clients have sent.
func fromProtobuf(body []byte) ([]byte, error) {
	o, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	o.GetObjectKind().SetGroupVersionKind(*kind)
	out, err := json.Marshal(o)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out, nil
}

// timeless is a URL without what client-go draws at random: how long a watch may last. It is part of hashes and of audit
// lines, which must be the same in each run with the seed.
func timeless(u *url.URL) string {
	if !u.Query().Has("watch") {
		return u.RequestURI()
	}
	v := u.Query()
	v.Del("timeoutSeconds")
	v.Del("timeout")
	return u.Path + "?" + v.Encode()
}

// wants reports whether a version is of what a list or a watch is about.
func (q *Request) wants(v *store.Version) bool {
	k := q.Key()
	if v.Key.Resource != k.Resource || k.Namespace != "" && v.Key.Namespace != k.Namespace {
		return false
	}
	if q.Name != "" && v.Key.Name != q.Name {
		return false
	}
	if !q.fields.Empty() && !q.fields.Matches(fields.Set{"metadata.name": v.Key.Name, "metadata.namespace": v.Key.Namespace}) {
		return false
	}
	return q.labels.Empty() || q.labels.Matches(labels.Set((&unstructured.Unstructured{Object: v.Body()}).GetLabels()))
}

// object reads JSON or YAML, with whole numbers as int64.
func object(body []byte) (*unstructured.Unstructured, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		var err error
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(body, &u.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return u, nil
}

func (q *Request) patchType() types.PatchType {
	kind, _, _ := strings.Cut(q.HTTP.Header.Get("Content-Type"), ";")
	return types.PatchType(strings.TrimSpace(kind))
}

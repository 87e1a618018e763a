package requests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"sigs.k8s.io/yaml"
)

// Transport passes requests on and writes them to a log. A line of the log is written before the answer is passed back, so
// a caller that has an answer finds its line.
type Transport struct {
	Base http.RoundTripper
	// User is the authenticated user who sends a request.
	User func(*http.Request) string
	// Log receives each event as one line in one Write. It is used by several goroutines.
	Log io.Writer
	Now func() time.Time
}

// maxBody bounds what is read of a request or an answer: an object of etcd's limit is smaller.
const maxBody = 4 << 20

// WrappedRoundTripper implements k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper: client-go finds the TLS configuration by it, and
// prints a warning where it cannot.
func (t *Transport) WrappedRoundTripper() http.RoundTripper { return t.Base }

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	verb, about := Parse(r.Method, r.URL)
	e := event{Kind: "Event", APIVersion: "audit.k8s.io/v1", AuditID: uuid.NewString(), RequestURI: r.URL.RequestURI(), Verb: verb,
		User: user{t.User(r)}, UserAgent: r.UserAgent(), Received: t.Now().UTC()}
	if about != (Object{}) {
		e.ObjectRef = &about
	}
	r, err := e.takeBody(r)
	if err != nil {
		return nil, err
	}
	if writes(verb) { // one without an answer may have been carried out
		if err := t.write(e, stageReceived); err != nil {
			return nil, err
		}
	}
	response, err := t.Base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if err := e.takeAnswer(response); err != nil {
		return nil, fmt.Errorf("%s %s: read the answer: %w", verb, e.RequestURI, err)
	}
	stage := stageComplete
	if verb == "watch" && response.StatusCode < http.StatusBadRequest {
		stage = stageStarted
	}
	return response, t.write(e, stage)
}

func (t *Transport) write(e event, stage string) error {
	e.Stage, e.Reached = stage, t.Now().UTC()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = t.Log.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("log of requests: %w", err)
	}
	return nil
}

func writes(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// bodyLogged reports whether bodies are logged: of the objects that reports and rollups are on.
func (e *event) bodyLogged() bool {
	return e.ObjectRef != nil && writes(e.Verb) && (e.ObjectRef.APIGroup == "operator.openshift.io" || e.ObjectRef.APIGroup == "config.openshift.io")
}

// takeBody returns a request with the same body, which is noted if it is logged.
func (e *event) takeBody(r *http.Request) (*http.Request, error) {
	if r.Body == nil || !e.bodyLogged() {
		return r, nil
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("%s %s: read the request: %w", e.Verb, e.RequestURI, err)
	}
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	if object, err := yaml.YAMLToJSON(text); err == nil { // JSON is YAML as well; of what is neither nothing can be logged
		e.RequestObject = object
	}
	return r, nil
}

// takeAnswer notes the code, and of an answer in JSON that is a refusal, or an answer to a write whose body is logged, what it says.
func (e *event) takeAnswer(response *http.Response) error {
	e.ResponseStatus = &status{Code: response.StatusCode}
	refused := response.StatusCode >= http.StatusBadRequest
	if !refused && !e.bodyLogged() || !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	if refused {
		said := status{}
		if json.Unmarshal(text, &said) == nil {
			said.Code = response.StatusCode
			e.ResponseStatus = &said
		}
		return nil
	}
	e.ResponseObject = &object{}
	_ = json.Unmarshal(text, e.ResponseObject) // an answer without a version is logged without it
	return nil
}

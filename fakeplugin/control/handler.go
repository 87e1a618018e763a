package control

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/server"
)

type API struct {
	// Faults are those that can be injected, and the profiles that can be set.
	Faults   fault.Catalogue
	Instance *server.Server // that is controlled
	Keys     Keys
	Journal  *journal.Log[journal.Call]
	Token    string // required of every request, unless it is empty
}

// Route is a method and path of the API.
type Route struct {
	Method, Path string
	handler      http.Handler
}

func (a API) Routes() []Route {
	j := func(h httpjson.Handler) http.Handler { return h }
	return []Route{
		{"GET", "/healthz", j(func(*http.Request) (any, error) { return map[string]string{"status": "ok"}, nil })},
		{"GET", "/openapi.yaml", http.HandlerFunc(serveOpenAPI)},
		{"GET", "/v1/status", j(func(*http.Request) (any, error) { return a.Instance.State(), nil })},
		{"GET", "/v1/catalogue", j(func(*http.Request) (any, error) { return a.Faults.Entries(), nil })},
		{"GET", "/v1/faults", j(func(*http.Request) (any, error) { return append([]fault.Active{}, a.Instance.Faults()...), nil })},
		{"POST", "/v1/faults", httpjson.Body(a.inject)},
		{"DELETE", "/v1/faults", j(a.releaseMany)},
		{"DELETE", "/v1/faults/{id}", j(a.releaseOne)},
		{"GET", "/v1/journal", http.HandlerFunc(a.journal)},
		{"GET", "/v1/keys", j(func(*http.Request) (any, error) { return a.keks(), nil })},
		{"POST", "/v1/rotate", httpjson.Body(a.rotate)},
		{"POST", "/v1/notice", j(a.notice)},
		{"PUT", "/v1/notice-lag", httpjson.Body(a.setLag)},
		{"PUT", "/v1/profile", httpjson.Body(a.setProfile)},
	}
}

// Handler serves the API.
func (a API) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range a.Routes() {
		mux.Handle(r.Method+" "+r.Path, r.handler)
	}
	return httpjson.WithToken(httpjson.NotFound(mux), a.Token)
}

func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI)
}

func (a API) inject(_ *http.Request, spec fault.Spec) (any, error) {
	f, err := a.Faults.Parse(spec.Name, spec.Params)
	if err != nil {
		return nil, httpjson.Errorf(http.StatusUnprocessableEntity, "%v", err)
	}
	active, err := a.Instance.Inject(f)
	if err != nil {
		return nil, httpjson.Errorf(http.StatusConflict, "%v", err)
	}
	return active, nil
}

func (a API) releaseOne(r *http.Request) (any, error) {
	id := r.PathValue("id")
	return a.release(fault.ByID(id), fmt.Sprintf("there is no fault in force with the id %.64q", id))
}

func (a API) releaseMany(r *http.Request) (any, error) {
	name := r.URL.Query().Get("name")
	if name == "" {
		return a.release(fault.All, "")
	}
	if _, err := a.Faults.Lookup(name); err != nil {
		return nil, httpjson.Errorf(http.StatusUnprocessableEntity, "%v", err)
	}
	return a.release(fault.ByName(name), "")
}

// release complains with missing, if that is not empty, when nothing was released.
func (a API) release(match func(fault.Active) bool, missing string) (any, error) {
	ended, err := a.Instance.Release(match)
	if err != nil {
		return nil, err
	}
	if len(ended) == 0 && missing != "" {
		return nil, httpjson.Errorf(http.StatusNotFound, "%s", missing)
	}
	out := Released{Released: []string{}}
	for _, f := range ended {
		out.Released = append(out.Released, f.ID)
	}
	return out, nil
}

func (a API) journal(w http.ResponseWriter, r *http.Request) {
	method := r.URL.Query().Get("method")
	if method == "" {
		journal.Serve(w, r, a.Journal, nil)
		return
	}
	methods, err := fault.ParseMethods(method)
	if err != nil {
		httpjson.WriteError(w, httpjson.Errorf(http.StatusBadRequest, "%v", err))
		return
	}
	journal.Serve(w, r, a.Journal, func(c journal.Call) bool { return slices.Contains(methods, fault.Method(c.Method)) })
}

func (a API) rotate(r *http.Request, req RotateRequest) (any, error) {
	if req.Reuse < 0 {
		return nil, httpjson.Errorf(http.StatusUnprocessableEntity, "reuse %d: expected a KEK version, from 1", req.Reuse)
	}
	kek, err := a.Keys.Rotate(r.Context(), req.Reuse)
	if err != nil {
		return nil, httpjson.Errorf(http.StatusConflict, "rotate: %v", err)
	}
	if !req.Notice {
		return kek, nil
	}
	if err := a.Keys.Notice(r.Context()); err != nil {
		return nil, httpjson.Errorf(http.StatusConflict, "rotated to %s, but not noticed: %v", kek.ID, err)
	}
	return kek, nil
}

func (a API) notice(r *http.Request) (any, error) {
	if err := a.Keys.Notice(r.Context()); err != nil {
		return nil, httpjson.Errorf(http.StatusConflict, "notice: %v", err)
	}
	return a.keks(), nil
}

func (a API) setLag(_ *http.Request, req NoticeLag) (any, error) {
	lag, err := time.ParseDuration(req.Lag)
	if err != nil || lag < 0 || lag > plugin.MaxNoticeLag {
		return nil, httpjson.Errorf(http.StatusUnprocessableEntity, "lag %.64q: expected a duration such as 30s, from 0s to %v", req.Lag, plugin.MaxNoticeLag)
	}
	if err := a.Keys.SetNoticeLag(lag); err != nil {
		return nil, httpjson.Errorf(http.StatusConflict, "lag: %v", err)
	}
	return NoticeLag{lag.String()}, nil
}

// setProfile takes the profiles of the program only: a file of one's own is an argument of the plugin.
func (a API) setProfile(_ *http.Request, req Profile) (any, error) {
	if req.Profile == "" {
		return req, a.Instance.SetProfile(nil)
	}
	p, err := a.Faults.Profiles.Find(req.Profile)
	if err != nil {
		return nil, httpjson.Errorf(http.StatusUnprocessableEntity, "%v", err)
	}
	if err := a.Instance.SetProfile(p); err != nil {
		return nil, httpjson.Errorf(http.StatusConflict, "%v", err)
	}
	return req, nil
}

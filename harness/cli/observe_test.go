package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/internal/program"
)

// clusterWith serves lists with one object of some resources, and watches in which nothing happens. Others are not found. It returns a kubeconfig.
func clusterWith(t *testing.T, resources ...string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		resource := filepath.Base(r.URL.Path)
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("%s %s", r.Method, r.URL)
		case resource == "readyz":
		case !strings.Contains(strings.Join(resources, " "), resource):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		case r.URL.Query().Get("watch") != "":
			if r.URL.Query().Get("sendInitialEvents") != "" { // streamed lists are not served
				w.WriteHeader(http.StatusUnprocessableEntity)
				fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
				return
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			kind, meta := "Thing", map[string]any{"name": "cluster", "resourceVersion": "7"}
			if resource == "secrets" {
				kind = "PartialObjectMetadata"
			}
			item := map[string]any{"kind": kind, "apiVersion": "v1", "metadata": meta}
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": kind + "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "9"}, "items": []any{item}})
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"kind":"Config","apiVersion":"v1","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestObserveWritesAVerdict(t *testing.T) {
	out := t.TempDir()
	code, text, problem := told(t, "", "observe", "--kubeconfig", clusterWith(t, "kubeapiservers", "nodes", "pods", "secrets"), "--for", "2s", "--out", out)
	for _, want := range []string{"not observed, because the cluster has no clusteroperators.config.openshift.io", "NOTHING-RAN            passed", "(because watched objects do not show it", "observe on cluster: passed"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, file := range []string{"observe/history.jsonl", "observe/verdict.txt", "index.html", "summary.json", "junit.xml"} {
		if _, err := os.Stat(filepath.Join(out, file)); err != nil {
			t.Error(err)
		}
	}
	if page, err := os.ReadFile(filepath.Join(out, "index.html")); err != nil || !strings.Contains(string(page), "(not judged: watched objects do not show it") {
		t.Errorf("the page does not say why invariants are not judged: %v", err)
	}
	if code != program.ExitPassed || t.Failed() {
		t.Errorf("exit %d, %q\n%s", code, problem, text)
	}
}

func TestObserveMistakes(t *testing.T) {
	for want, args := range map[string][]string{
		"nothing to observe: the cluster has no kubeapiservers.operator.openshift.io": {"--kubeconfig", clusterWith(t)},
		"--kubeconfig: stat none":                      {"--kubeconfig", "none"},
		"expected NAMESPACE/NAME":                      {"--aggregator-lease", "x"},
		"jitter 3s: must be 0 to a tenth of the inter": {"--interval", "1s"},
	} {
		code, _, problem := told(t, "", append([]string{"observe", "--for", "1s", "--out", t.TempDir()}, args...)...)
		if code != program.ExitCouldNotRun || !strings.Contains(problem, want) || strings.Contains(problem, "\n") {
			t.Errorf("%q: exit %d, %q", args, code, problem)
		}
	}
}

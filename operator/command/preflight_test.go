package command

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/preflight"
)

func TestParsePreflight(t *testing.T) {
	const all = "--kms-sockets unix:///a/kms-1.sock,unix:///a/kms-2.sock --kms-call-timeout 5s --config-hash AAAAAAA= --pod-name p --pod-namespace n --kubeconfig k"
	o, err := parsePreflight(strings.Fields(all))
	if err != nil || len(o.sockets) != 2 || o.hash != "AAAAAAA=" || o.timeout != preflightTimeout || o.poll != preflightPoll {
		t.Errorf("%+v, %v", o, err)
	}
	for _, wrong := range []string{"", all + " more", all + " --timeout 0s", strings.Replace(all, "--pod-name p", "", 1)} {
		if _, err := parsePreflight(strings.Fields(wrong)); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// TestPreflightOfSeveral: of several plugins the one that failed is named, and the kekID is that of the first.
func TestPreflightOfSeveral(t *testing.T) {
	o := preflightOptions{sockets: []string{"unix:///a/kms-1.sock", "unix:///nowhere/kms-2.sock"}, hash: "a", call: time.Second, poll: time.Millisecond, timeout: 100 * time.Millisecond}
	first := func(context.Context, kmsapi.KeyManagementServiceClient, string, preflight.Options) core.Preflight {
		return core.Preflight{Hash: "a", OK: true, KEK: "kek-1"}
	}
	got := o.check(t.Context(), host.Host{}, first)
	if got.OK || got.KEK != "kek-1" || !strings.HasPrefix(got.Message, "kms-2.sock: ") {
		t.Errorf("%+v", got)
	}
}

// TestPreflightIsPublished: a result takes the place of an earlier one, and is not lost while the API server is away.
func TestPreflightIsPublished(t *testing.T) {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
	pod.Status.Conditions = append(operator.PreflightConditions(core.Preflight{Hash: "a", OK: true, KEK: "kek-1"}, metav1.Now()), corev1.PodCondition{Type: corev1.PodReady})
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests < 3 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if r.Method == http.MethodPut {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			pod = &corev1.Pod{}
			if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, pod); err != nil {
				t.Error(err)
			}
			pod.APIVersion, pod.Kind = "v1", "Pod"
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(pod); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: '" + server.URL + "'}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := preflightOptions{hash: "b", pod: "p", namespace: "n", kubeconfig: kubeconfig, poll: time.Millisecond, timeout: time.Minute}
	if err := o.publish(t.Context(), host.Host{}, core.Preflight{Hash: "b", Message: "no KMS"}); err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, c := range pod.Status.Conditions {
		types = append(types, string(c.Type))
	}
	if want := []string{"Ready", "KMSPreflightResult", "KMSPreflightConfigHash"}; !slices.Equal(types, want) || pod.Status.Conditions[1].Message != "no KMS" {
		t.Errorf("%v, want %v: %+v", types, want, pod.Status.Conditions)
	}
}

package assets

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func platform() string { return runtime.GOOS + "-" + runtime.GOARCH }

// archive is one like setup-envtest downloads.
func archive(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	files := tar.NewWriter(zip)
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := files.WriteHeader(&tar.Header{Name: "controller-tools/envtest/" + name, Mode: 0o755, Size: int64(len(fakeProgram))}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(fakeProgram)); err != nil {
			t.Fatal(err)
		}
	}
	if files.Close() != nil || zip.Close() != nil {
		t.Fatal("cannot pack")
	}
	return out.Bytes()
}

func TestDownload(t *testing.T) {
	packed := archive(t)
	for _, test := range []struct{ name, sum, problem string }{
		{"good", fmt.Sprintf("%x", sha512.Sum512(packed)), ""},
		{"bad checksum", strings.Repeat("0", 128), "checksum"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, store := emptyMachine(t)
			fakeGo(t, "exit 1") // there is no way but the download
			r, err := loadRecipe()
			if err != nil {
				t.Fatal(err)
			}
			newest, older := r.major+"."+r.minor+".9", r.major+"."+r.minor+".0"
			url := index(t, func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/archive" {
					_, _ = w.Write(packed)
					return
				}
				fmt.Fprint(w, "releases:\n")
				for _, v := range []string{older, newest, "1.1.0"} {
					fmt.Fprintf(w, "  v%s:\n    envtest-v%s-%s.tar.gz: {hash: %s, selfLink: \"http://%s/archive\"}\n", v, v, platform(), test.sum, req.Host)
				}
			})
			said := &lines{}
			b, err := Ensure(t.Context(), Options{Progress: said.add, index: url})
			if test.problem != "" {
				if err == nil || !strings.Contains(said.String(), test.problem) {
					t.Errorf("%v, said %q", err, said)
				}
				return
			}
			if err != nil || b.Version != "v"+newest || filepath.Dir(b.Etcd) != filepath.Join(store, newest+"-"+platform()) {
				t.Errorf("%+v, %v", b, err)
			}
		})
	}
}

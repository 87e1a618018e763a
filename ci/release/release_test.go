package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// folder has this test's program twice, as programs of two archives, and the archives.
func folder(t *testing.T) (programs, out string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	programs, out = t.TempDir(), t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		bin := filepath.Join(programs, "kmsharness-v1.0.0-linux-"+arch, "bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(self, filepath.Join(bin, "kmsharness")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(out, "kmsharness-v1.0.0-linux-"+arch+".tar.gz"), []byte(arch), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return programs, out
}

func TestSBOM(t *testing.T) {
	programs, out := folder(t)
	var texts []string
	for range 2 {
		if err := run("v1.0.0", time.Unix(1, 0).UTC(), programs, out); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(out, "kmsharness-v1.0.0.spdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	if texts[0] != texts[1] {
		t.Error("the same programs give two documents")
	}
	var d document
	if err := json.Unmarshal([]byte(texts[0]), &d); err != nil {
		t.Fatal(err)
	}
	known, names := map[string]bool{spdxRoot: true}, map[string]bool{}
	for _, p := range d.Packages {
		if known[p.SPDXID] || p.VersionInfo == "" {
			t.Errorf("%+v: it is there twice, or has no version", p)
		}
		known[p.SPDXID], names[p.Name] = true, true
	}
	for _, r := range d.Relationships {
		if !known[r.From] || !known[r.To] {
			t.Errorf("%+v is about something else", r)
		}
	}
	for _, name := range []string{"kmsharness-v1.0.0-linux-arm64/bin/kmsharness", "sigs.k8s.io/yaml", "std"} {
		if !names[name] {
			t.Errorf("no package %s", name)
		}
	}
}

func TestKrew(t *testing.T) {
	programs, out := folder(t)
	if err := run("v1.0.0", time.Unix(1, 0), programs, out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, "kmsharness.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		Spec struct {
			Platforms []struct {
				Selector struct {
					MatchLabels map[string]string `json:"matchLabels"`
				} `json:"selector"`
				URI    string `json:"uri"`
				SHA256 string `json:"sha256"`
			} `json:"platforms"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &plugin); err != nil || len(plugin.Spec.Platforms) != 2 {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, p := range plugin.Spec.Platforms {
		file := filepath.Join(out, filepath.Base(p.URI))
		if sum, err := sha256Of(file); err != nil || sum != p.SHA256 || !strings.HasSuffix(file, "-linux-"+p.Selector.MatchLabels["arch"]+".tar.gz") {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestRefused: nothing is built that no tag names.
func TestRefused(t *testing.T) {
	root := t.TempDir()
	script, err := os.ReadFile("release.sh")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "ci", "release", "release.sh")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, script, 0o755); err != nil {
		t.Fatal(err)
	}
	sh := func(command string) string {
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@a")
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	release := "ci/release/release.sh "
	sh("git init -q && git add . && git commit -qm x")
	for command, want := range map[string]string{
		release + "1.0 amd64":                         "expected vMAJOR.MINOR.PATCH",
		release + "v1.0.0 amd64":                      "HEAD has no tag v1.0.0",
		"git tag v1.0.1; " + release + "v1.0.1 sparc": "expected amd64 or arm64",
		"touch x; " + release + "v1.0.1 amd64; rm x":  "the checkout has changes",
	} {
		if out := sh(command); !strings.Contains(out, want) {
			t.Errorf("%s: %q, want %q", command, out, want)
		}
	}
}

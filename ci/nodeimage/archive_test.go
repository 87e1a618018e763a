package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// contents reads a tar file whole.
func contents(t *testing.T, from io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for in := tar.NewReader(from); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
}

// TestArchive reads the archive as containerd does: manifest, then config and layers by name, each layer by its checksum.
func TestArchive(t *testing.T) {
	work := t.TempDir()
	program := filepath.Join(work, "pause")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := component{image: "registry/pause:3", entrypoint: "/pause", programs: []string{program}}
	dir := filepath.Join(work, "images", "pause")
	if err := c.lay(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(work, "images.tar")
	if err := writeArchive(path, []component{c}, []string{dir}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := contents(t, bytes.NewReader(text))
	var manifest []archiveEntry
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("%v, %v", manifest, err)
	}
	entry := manifest[0]
	if entry.RepoTags[0] != c.image || len(entry.Layers) != 1 {
		t.Errorf("%+v", entry)
	}
	var config struct {
		Config struct{ Entrypoint, Env []string }
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(files[entry.Config], &config); err != nil {
		t.Fatal(err)
	}
	layer := files[entry.Layers[0]]
	sum := sha256.Sum256(layer)
	id := "sha256:" + hex.EncodeToString(sum[:])
	if len(config.RootFS.DiffIDs) != 1 || config.RootFS.DiffIDs[0] != id || config.Config.Entrypoint[0] != "/pause" {
		t.Errorf("%+v", config)
	}
	if got := contents(t, bytes.NewReader(layer)); string(got["pause"]) != "program" || got["tmp/"] == nil {
		t.Errorf("the layer has %v", got)
	}
}

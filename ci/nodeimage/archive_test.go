package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
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
	tag, err := name.NewTag(c.image)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Config.Entrypoint[0] != "/pause" || config.OS != "linux" {
		t.Errorf("%+v, %v", config, err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	layer, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer layer.Close()
	if got := contents(t, layer); string(got["pause"]) != "program" || got["tmp/"] == nil {
		t.Errorf("the layer has %v", got)
	}
}

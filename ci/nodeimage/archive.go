package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
)

// archiveEntry is one image in manifest.json of an archive as docker save makes it and containerd imports it.
type archiveEntry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// writeArchive makes an archive of the components; dirs has a directory with the files of each.
func writeArchive(path string, images []component, dirs []string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	out := tar.NewWriter(file)
	var manifest []archiveEntry
	for i, c := range images {
		entry, err := addImage(out, c, dirs[i])
		if err != nil {
			return fmt.Errorf("image %s: %w", c.image, err)
		}
		manifest = append(manifest, entry)
	}
	if err := addJSON(out, "manifest.json", manifest); err != nil {
		return err
	}
	return out.Close()
}

func addImage(out *tar.Writer, c component, dir string) (archiveEntry, error) {
	layer, diffID, err := makeLayer(dir)
	if err != nil {
		return archiveEntry{}, err
	}
	defer layer.Close()
	entry := archiveEntry{Config: diffID + ".json", RepoTags: []string{c.image}, Layers: []string{diffID + "/layer.tar"}}
	if err := addFile(out, entry.Layers[0], layer); err != nil {
		return archiveEntry{}, err
	}
	return entry, addJSON(out, entry.Config, map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{
			"Entrypoint": []string{c.entrypoint},
			"Env":        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + diffID}},
	})
}

// makeLayer packs a directory beside itself: a tar entry's size must be known before its content.
func makeLayer(dir string) (file *os.File, diffID string, err error) {
	file, err = os.Create(dir + ".layer.tar")
	if err != nil {
		return nil, "", err
	}
	sum := sha256.New()
	layer := tar.NewWriter(io.MultiWriter(file, sum))
	if err = layer.AddFS(os.DirFS(dir)); err == nil {
		err = layer.Close()
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, "", err
	}
	return file, hex.EncodeToString(sum.Sum(nil)), nil
}

func addFile(out *tar.Writer, name string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(out, file)
	return err
}

func addJSON(out *tar.Writer, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

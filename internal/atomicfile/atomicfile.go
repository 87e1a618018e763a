// Package atomicfile replaces files in one step.
package atomicfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces a file in one step: a reader, also after a kill, finds the old content or the new one. It is for one writer of a file.
func Write(path string, content []byte, mode fs.FileMode) error {
	next := path + ".new"
	if err := os.WriteFile(next, content, mode); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// WriteJSON is Write of a value as indented JSON.
func WriteJSON(path string, value any, mode fs.FileMode) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return Write(path, append(text, '\n'), mode)
}

// WriteTo is Write of what a function writes. It makes the folder.
func WriteTo(path string, write func(io.Writer) error) error {
	var text bytes.Buffer
	err := write(&text)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = Write(path, text.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Package atomicfile replaces files in one step.
package atomicfile

import (
	"encoding/json"
	"io/fs"
	"os"
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

// Package atomicfile replaces files in one step.
package atomicfile

import (
	"io/fs"
	"os"
)

// Write replaces a file in one step: a reader, and whoever comes after a kill, finds the old content or the new one. It is for one writer of a file.
func Write(path string, content []byte, mode fs.FileMode) error {
	next := path + ".new"
	if err := os.WriteFile(next, content, mode); err != nil {
		return err
	}
	return os.Rename(next, path)
}

package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Names of files and sockets are relative to the agent's folder: "FOLDER/FILE".

// Followed reports whether a file is copied to the harness: a journal or a log, and neither a socket nor a credential.
func Followed(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".log" || ext == ".jsonl"
}

// Sizes are bytes of files by name.
type Sizes map[string]int64

// folder is the agent's.
type folder string

// path of a name, which must stay below the folder.
func (f folder) path(name string) (string, error) {
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("name %.100q: expected FOLDER/FILE", name)
	}
	return filepath.Join(string(f), name), nil
}

// sizes of the files that are followed.
func (f folder) sizes() (Sizes, error) {
	paths, err := filepath.Glob(filepath.Join(string(f), "*", "*"))
	if err != nil {
		return nil, err
	}
	all := Sizes{}
	for _, path := range paths {
		name, err := filepath.Rel(string(f), path)
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && Followed(name) {
			all[name] = info.Size()
		}
	}
	return all, nil
}

// put replaces a file in one step.
func (f folder) put(name string, text io.Reader, mode fs.FileMode) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path+".next", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, text)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".next", path)
}

// chunk is the head of a part of a file in the stream of a follower; Bytes bytes come behind it. One without a name shows that the agent
// lives.
type chunk struct {
	Name  string `json:"name,omitempty"`
	At    int64  `json:"at,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
}

const (
	// followEvery is how often files are looked at; it bounds how late the harness sees a line.
	followEvery = 25 * time.Millisecond
	// aliveEvery is how often an idle stream shows that it lives.
	aliveEvery = time.Second
	// chunkBytes bounds one chunk, so that a large file does not hold up the others.
	chunkBytes = 256 << 10
)

// follow writes what is appended to the files, behind what the reader has, until ctx ends.
func (f folder) follow(ctx context.Context, has Sizes, w io.Writer, flush func()) error {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	var said time.Time
	for {
		sent, err := f.sendNew(has, w)
		if err != nil {
			return err
		}
		if !sent && time.Since(said) >= aliveEvery {
			sent, err = true, writeChunk(w, chunk{}, nil)
		}
		if err != nil {
			return err
		}
		if sent {
			said = time.Now()
			flush()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (f folder) sendNew(has Sizes, w io.Writer) (sent bool, err error) {
	all, err := f.sizes()
	if err != nil {
		return false, err
	}
	for name, size := range all {
		for has[name] < size {
			c := chunk{Name: name, At: has[name], Bytes: min(size-has[name], chunkBytes)}
			if err := f.send(c, w); err != nil {
				return sent, err
			}
			has[name], sent = c.At+c.Bytes, true
		}
	}
	return sent, nil
}

func (f folder) send(c chunk, w io.Writer) error {
	file, err := os.Open(filepath.Join(string(f), c.Name))
	if err != nil {
		return err
	}
	defer file.Close()
	return writeChunk(w, c, io.NewSectionReader(file, c.At, c.Bytes))
}

func writeChunk(w io.Writer, c chunk, content io.Reader) error {
	head, err := json.Marshal(c)
	if err == nil {
		_, err = w.Write(append(head, '\n'))
	}
	if err == nil && content != nil {
		_, err = io.CopyN(w, content, c.Bytes)
	}
	return err
}

// readChunk reads one chunk and gives it to use, which reads all of content.
func readChunk(r *bufio.Reader, use func(name string, at int64, content []byte) error) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	var c chunk
	if err := json.Unmarshal(line, &c); err != nil || c.Bytes < 0 || c.Bytes > chunkBytes {
		return fmt.Errorf("stream of the agent: %.100q is no chunk", line)
	}
	content := make([]byte, c.Bytes)
	if _, err := io.ReadFull(r, content); err != nil {
		return err
	}
	if c.Name == "" {
		return nil
	}
	if !filepath.IsLocal(c.Name) {
		return fmt.Errorf("stream of the agent: %.100q is no name", c.Name)
	}
	return use(c.Name, c.At, content)
}

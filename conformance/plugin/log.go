package plugin

import (
	"fmt"
	"io"
	"os"
)

// logSource is the file with the plugin's log. The zero value is no log.
type logSource struct {
	file  string
	begin int64 // its size before the run
}

// maxLogBytes bounds what is read of a log.
const maxLogBytes = 256 << 20

func newLogSource(file string) (logSource, error) {
	if file == "" {
		return logSource{}, nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return logSource{}, fmt.Errorf("the log of the plugin: %w", err)
	}
	if !info.Mode().IsRegular() {
		return logSource{}, fmt.Errorf("the log of the plugin: %s is not a regular file", file)
	}
	return logSource{file, info.Size()}, nil
}

// ReadLog returns what the plugin has logged since the run began. It needs the capability Log.
func (l logSource) ReadLog() (data []byte, err error) {
	f, err := os.Open(l.file)
	if err == nil {
		defer f.Close()
		if info, err := f.Stat(); err != nil || info.Size() < l.begin { // it was rotated: all of it is new
			l.begin = 0
		}
		data, err = io.ReadAll(io.NewSectionReader(f, l.begin, maxLogBytes))
	}
	if err != nil {
		return nil, fmt.Errorf("read the log of the plugin: %w", err)
	}
	return data, nil
}

package agent

import (
	"os"
	"sync"
)

// lineLog is a file that several goroutines append lines to.
type lineLog struct {
	mu   sync.Mutex
	file *os.File
}

func openLineLog(path string) (*lineLog, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &lineLog{file: file}, err
}

// Write implements io.Writer.
func (l *lineLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Write(line)
}

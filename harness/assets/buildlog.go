package assets

import (
	"fmt"
	"os"
	"strings"
)

// howFar reads a log of go build -v: one line for each package as it is compiled, "go: downloading …" before.
func howFar(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	compiled, last := 0, "starting"
	for line := range strings.Lines(strings.TrimSpace(string(text))) {
		line = strings.TrimSpace(line)
		last = strings.TrimPrefix(line, "go: ")
		if last == line {
			compiled++
		}
	}
	return fmt.Sprintf("%d packages compiled, now %s", compiled, last)
}

package hold

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// maxCommand bounds a command file in bytes; the kernel takes no longer command line either.
const maxCommand = 128 << 10

// commandMissing says that there is no command yet, so that the program has to wait to be started.
func (o Options) commandMissing() bool {
	if o.CommandFile == "" {
		return false
	}
	_, err := os.Stat(o.CommandFile)
	return errors.Is(err, fs.ErrNotExist)
}

// command is the program and its arguments, as they are now.
func (o Options) command() ([]string, error) {
	if o.CommandFile == "" {
		return o.Argv, nil
	}
	info, err := os.Stat(o.CommandFile)
	if err != nil {
		return nil, fmt.Errorf("--command: %w", err)
	}
	if info.Size() > maxCommand {
		return nil, fmt.Errorf("--command %s: it has %d bytes, expected at most %d", o.CommandFile, info.Size(), maxCommand)
	}
	text, err := os.ReadFile(o.CommandFile)
	if err != nil {
		return nil, fmt.Errorf("--command: %w", err)
	}
	argv, err := ParseCommand(text)
	if err != nil {
		return nil, fmt.Errorf("--command %s: %w", o.CommandFile, err)
	}
	return argv, nil
}

// ParseCommand reads the content of a command file.
func ParseCommand(text []byte) (argv []string, err error) {
	if err := json.Unmarshal(text, &argv); err != nil {
		return nil, fmt.Errorf("expected a JSON list of words such as [\"/program\", \"--flag\"]: %w", err)
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("expected a program as the first word")
	}
	return argv, nil
}

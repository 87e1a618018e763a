package profile

import (
	"embed"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/kmsharness/kmsharness/internal/input"
)

//go:embed data/*.yaml
var data embed.FS

// Names are the profiles of this repository, sorted.
func Names() []string {
	files, err := data.ReadDir("data")
	if err != nil {
		return nil // it is in the program
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(f.Name(), ".yaml")
	}
	return names
}

func Builtin(name string) (*Profile, error) {
	text, err := data.ReadFile(path.Join("data", name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("there is no profile %.64q (there are: %s)", name, strings.Join(Names(), ", "))
	}
	return Parse(name+".yaml", text)
}

// Load is a profile of this repository by its name, or one of somebody's own by the path of its file: a name with a slash or
// with the ending .yaml.
func Load(nameOrFile string) (*Profile, error) {
	if !strings.Contains(nameOrFile, "/") && !strings.HasSuffix(nameOrFile, ".yaml") {
		return Builtin(nameOrFile)
	}
	f, err := input.Open(nameOrFile)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return Parse(nameOrFile, text)
}

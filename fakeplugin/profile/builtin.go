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

// Catalogue is the profiles that a program knows: those of another module, and always the built-in ones of this repository. Parse reads one from a
// file that is embedded in the program.
type Catalogue []*Profile

// Names are the names of all profiles: the built-in ones sorted, then the others.
func (c Catalogue) Names() (names []string) {
	files, err := data.ReadDir("data")
	if err != nil {
		return nil // it is in the program
	}
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	for _, p := range c {
		names = append(names, p.Name)
	}
	return names
}

// Find returns the profile of a name.
func (c Catalogue) Find(name string) (*Profile, error) {
	for _, p := range c {
		if p.Name == name {
			return p, nil
		}
	}
	text, err := data.ReadFile(path.Join("data", name+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("there is no profile %.64q (there are: %s)", name, strings.Join(c.Names(), ", "))
	}
	return Parse(name+".yaml", text)
}

// Load is a profile of the catalogue by its name, or one by the path of its file: a name with a slash or with the ending .yaml.
func (c Catalogue) Load(nameOrFile string) (*Profile, error) {
	if !strings.Contains(nameOrFile, "/") && !strings.HasSuffix(nameOrFile, ".yaml") {
		return c.Find(nameOrFile)
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

package scenario

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kmsharness/kmsharness/internal/input"
	"github.com/kmsharness/kmsharness/internal/strictyaml"
)

// Load reads files, and of directories every *.yaml and *.yml below them, sorted by name. The error is Problems where
// files have mistakes, all of all files; a name that stands in two files is one.
func (p *Parser) Load(paths ...string) ([]*Scenario, error) {
	var files []string
	for _, path := range paths {
		found, err := scenarioFiles(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	return p.loadFiles(slices.Compact(files))
}

func (p *Parser) loadFiles(files []string) ([]*Scenario, error) {
	var out []*Scenario
	var problems Problems
	names := map[string]string{}
	for _, file := range files {
		data, err := readBounded(file)
		if err != nil {
			return nil, fmt.Errorf("read scenario: %w", err)
		}
		s, err := p.Parse(file, data)
		var mistakes Problems
		switch {
		case errors.As(err, &mistakes):
			problems = append(problems, mistakes...)
		case err != nil:
			return nil, err
		case names[s.Name] != "":
			problems = append(problems, Problem{File: file, Pos: Position{1, 1}, What: fmt.Sprintf("scenario %q stands in %s too, expected one file per name", s.Name, names[s.Name])})
		default:
			names[s.Name] = file
			out = append(out, s)
		}
	}
	return out, problems.orNil()
}

func scenarioFiles(path string) ([]string, error) {
	if path == "-" { // standard input
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("find scenarios: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ext := filepath.Ext(p); d.Type().IsRegular() && (ext == ".yaml" || ext == ".yml") {
			files = append(files, p)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find scenarios: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("find scenarios: no *.yaml below %s", path)
	}
	return files, nil
}

// readBounded reads one byte more than is allowed at most, so that the parser can say that a file is too large without
// reading all of it.
func readBounded(file string) ([]byte, error) {
	f, err := input.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, strictyaml.MaxBytes+1))
}

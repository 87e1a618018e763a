package scenarios

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
)

// Load parses the catalogue, in the order of the file names, and adds what is written in Go. The error has every mistake
// of every scenario.
func Load() ([]*scenario.Scenario, error) {
	parser, err := standard.Parser()
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	names, err := fs.Glob(files, "catalogue/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	var all []*scenario.Scenario
	var errs []error
	for _, name := range names {
		s, err := loadOne(parser, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, s)
	}
	for _, s := range Authored() {
		errs = append(errs, parser.Validate(s))
		all = append(all, s)
	}
	return all, errors.Join(errs...)
}

func loadOne(parser *scenario.Parser, name string) (*scenario.Scenario, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	return parser.Parse("scenarios/"+name, data)
}

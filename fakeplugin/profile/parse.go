package profile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kmsharness/kmsharness/internal/strictyaml"
)

// Parse reads a profile. All mistakes are told at once, one line each, with their place: file:line: what is wrong, and what
// was expected.
func Parse(file string, text []byte) (*Profile, error) {
	r := &reader{file: file}
	root, problems := strictyaml.Read(text, "profile", "the fields "+strings.Join(fields(), ", "))
	for _, p := range problems {
		r.add(p.Line, "%s", p.What)
	}
	if len(problems) > 0 {
		return nil, errors.Join(r.problems...)
	}
	p := r.profile(root)
	if len(r.problems) > 0 {
		return nil, errors.Join(r.problems...)
	}
	return p, nil
}

// reader collects mistakes.
type reader struct {
	file     string
	problems []error
}

func (r *reader) add(line int, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s:%d: %s", r.file, max(1, line), fmt.Sprintf(format, args...)))
}

package live

import (
	"context"
	"errors"
	"io"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A request that nobody answers is tried again. What an API server answers stands, and a request that is never answered fails with the context.
func TestUntilAnswered(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "data-1")
	for name, test := range map[string]struct {
		answers []error
		ends    bool // the context, with the last of them
		want    error
		tries   int
	}{
		"at once":          {[]error{nil}, false, nil, 1},
		"after a restart":  {[]error{io.EOF, io.EOF, nil}, false, nil, 3},
		"it is lost":       {[]error{io.EOF, notFound}, false, notFound, 2},
		"it never answers": {[]error{io.EOF, io.ErrUnexpectedEOF}, true, io.ErrUnexpectedEOF, 2},
		"no time for any":  {nil, true, context.Canceled, 0},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		tries := 0
		if len(test.answers) == 0 {
			cancel()
		}
		err := untilAnswered(ctx, func(ctx context.Context) error {
			if len(test.answers) == 0 {
				return ctx.Err()
			}
			tries++
			if tries == len(test.answers) && test.ends {
				cancel()
			}
			return test.answers[tries-1]
		})
		if cancel(); !errors.Is(err, test.want) || tries != test.tries {
			t.Errorf("%s: %v after %d tries, want %v after %d", name, err, tries, test.want, test.tries)
		}
	}
}

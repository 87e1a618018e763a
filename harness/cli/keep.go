package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/kmsharness/kmsharness/harness/backend/choose"
)

// inspect says how to look into the environments that --keep left running, and keeps them until Ctrl-C: they are
// children of this process and end with it.
func inspect(ctx context.Context, w io.Writer, b choose.Backend, out string) error {
	kept := b.Kept()
	if len(kept) == 0 {
		return nil
	}
	for _, env := range kept {
		d, err := env.Describe()
		if err != nil {
			return err
		}
		s := upState{Description: d, History: out + "/*/history.jsonl", End: "Ctrl-C"}
		if err := s.print(w); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "\nkept running until Ctrl-C")
	<-ctx.Done()
	return nil
}

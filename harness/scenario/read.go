package scenario

import (
	"io"
	"os"
)

// readBounded reads one byte more than is allowed at most, so that the parser can say that a file is too large without
// reading all of it.
func readBounded(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
}

package fault

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
)

// maxCode bounds a gRPC code. Those above 16 are not defined, which is why a client should be shown one.
const maxCode = 99

// parseCode reads a name in any of its spellings (Unavailable, UNAVAILABLE, resource-exhausted) or a number.
func parseCode(s string) (codes.Code, error) {
	if n, err := strconv.Atoi(s); err == nil {
		if n < 1 || n > maxCode {
			return 0, fmt.Errorf("code: got %d, expected 1 to %d (for an answer without an error see nil-response)", n, maxCode)
		}
		return codes.Code(n), nil
	}
	plain := strings.NewReplacer("_", "", "-", "", " ", "")
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if strings.EqualFold(plain.Replace(s), c.String()) {
			return c, nil
		}
	}
	return 0, fmt.Errorf("code: got %.64q, expected the name of a gRPC code such as Unavailable, or a number", s)
}

func parseMode(s string) (fs.FileMode, error) {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n > 0o777 {
		return 0, fmt.Errorf("mode: got %.32q, expected an octal mode from 0000 to 0777", s)
	}
	return fs.FileMode(n), nil
}

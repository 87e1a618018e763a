package archive

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
)

// architecture is that of a program, in the words of an image. It refuses a program that could not run alone: an image
// from nothing has no loader and no libraries, and the error of a node would only be "no such file or directory".
func architecture(program []byte) (string, error) {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return "", fmt.Errorf("it is no Linux program: %w", err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", errors.New("it is linked dynamically: build it with CGO_ENABLED=0")
		}
	}
	switch {
	case f.Machine == elf.EM_X86_64:
		return "amd64", nil
	case f.Machine == elf.EM_AARCH64:
		return "arm64", nil
	case f.Machine == elf.EM_S390:
		return "s390x", nil
	case f.Machine == elf.EM_PPC64 && f.ByteOrder.String() == "LittleEndian":
		return "ppc64le", nil
	}
	return "", fmt.Errorf("it is for %v: expected amd64, arm64, ppc64le or s390x", f.Machine)
}

package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/ci/images"
	"github.com/kmsharness/kmsharness/ci/images/archive"
)

// programs writes a fake program of the given size for every image; it does not compress.
func programs(t *testing.T, size int) string {
	t.Helper()
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Ehsize: 64}
	copy(h.Ident[:], elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}))
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, h)
	noise := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	b.Write(noise)
	dir := t.TempDir()
	for _, d := range images.All() {
		if err := os.WriteFile(filepath.Join(dir, d.Program), b.Bytes(), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestBuild(t *testing.T) {
	bin, out := programs(t, 1000), filepath.Join(t.TempDir(), "images")
	var text bytes.Buffer
	if err := run(bin, out, images.All(), &text); err != nil {
		t.Fatal(err)
	}
	for _, d := range images.All() {
		info, err := os.Stat(filepath.Join(out, d.Name+".tar"))
		if err != nil || info.Size() > archive.MaxBytes {
			t.Errorf("%s: %+v, %v", d.Name, info, err)
		}
		if !strings.Contains(text.String(), d.Reference()) {
			t.Errorf("%s is not in the table:\n%s", d.Reference(), text.String())
		}
	}
}

func TestWhatIsTooLargeOrMissingIsNamed(t *testing.T) {
	out := t.TempDir()
	err := run(programs(t, archive.MaxBytes), out, images.Definitions()[:1], &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "kmsharness/fake-kms-plugin:dev has 20.0 MiB: expected at most 20 MiB") {
		t.Errorf("too large: %v", err)
	}
	if err := run(out, out, images.Definitions(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "fake-kms-plugin: no such file") {
		t.Errorf("no programs: %v", err)
	}
	if left, err := os.ReadDir(out); err != nil || len(left) != 0 {
		t.Errorf("a failed build leaves %v, %v", left, err)
	}
}

package archive_test

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/kmsharness/kmsharness/ci/images"
	"github.com/kmsharness/kmsharness/ci/images/archive"
)

// program is the smallest thing that looks like a static program; text makes it different from others.
func program(machine elf.Machine, text string, progs ...elf.ProgType) []byte {
	const headerSize, progSize = 64, 56
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Phoff: headerSize, Ehsize: headerSize, Phentsize: progSize, Phnum: uint16(len(progs)),
	}
	copy(h.Ident[:], elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}))
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, h)
	for _, p := range progs {
		_ = binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(p)})
	}
	b.WriteString(text)
	return b.Bytes()
}

// made is an image, the name of its content, and its archive under that name.
func made(t *testing.T, d images.Definition, program []byte) (v1.Image, string, []byte) {
	t.Helper()
	image, err := archive.Assemble(d, program)
	if err != nil {
		t.Fatal(err)
	}
	content, err := archive.ContentName(d, image)
	if err != nil {
		t.Fatal(err)
	}
	text, err := archive.Of(image, content)
	if err != nil {
		t.Fatal(err)
	}
	return image, content, text
}

func TestTheSameProgramIsTheSameImage(t *testing.T) {
	for _, d := range images.Definitions() {
		_, first, a := made(t, d, program(elf.EM_X86_64, "one"))
		_, second, b := made(t, d, program(elf.EM_X86_64, "one"))
		if first != second || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %s, %s", d.Name, first, second)
		}
		if _, other, _ := made(t, d, program(elf.EM_X86_64, "two")); other == first {
			t.Errorf("%s: another program is %s as well", d.Name, other)
		}
	}
}

// A digest that is known keeps the claim honest across machines and releases of the libraries. The configuration's does not
// depend on compression; if it changes on purpose, all content tags change.
func TestTheContentTagIsKnown(t *testing.T) {
	const want = "kmsharness/fake-kms-plugin:7460d8a9daa2"
	if _, got, _ := made(t, images.Definitions()[0], program(elf.EM_X86_64, "one")); got != want {
		t.Errorf("content tag %s, want %s", got, want)
	}
}

func TestWhatIsInside(t *testing.T) {
	d := images.Definitions()[1]
	image, _, _ := made(t, d, program(elf.EM_AARCH64, "one"))
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c.Architecture != "arm64" || c.OS != "linux" || c.Config.User != "65532:65532" || c.Created.Unix() != 0 ||
		strings.Join(c.Config.Entrypoint, " ") != "/kms-health-reporter" || c.Config.Labels["org.opencontainers.image.title"] != d.Program {
		t.Errorf("%+v", c)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	if err := validate.Layer(layers[0]); err != nil {
		t.Error(err)
	}
	r, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	files := list(t, r)
	if h := files["kms-health-reporter"].header; len(files) != 1 || h == nil || h.Mode != 0o755 || h.Uid != 0 || h.ModTime.Unix() != 0 {
		t.Errorf("%+v", files)
	}
	if d.Reference() != "kmsharness/kms-health-reporter:dev" {
		t.Errorf("%+v", d)
	}
}

type file struct {
	header *tar.Header
	text   []byte
}

func list(t *testing.T, r io.Reader) map[string]file {
	t.Helper()
	all := map[string]file{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = file{h, b}
	}
}

func TestTheArchiveHasTheImageUnderItsName(t *testing.T) {
	image, want, b := made(t, images.Definitions()[2], program(elf.EM_X86_64, "one"))
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	manifest, err := tarball.LoadManifest(opener)
	if err != nil || len(manifest) != 1 || strings.Join(manifest[0].RepoTags, " ") != want {
		t.Fatalf("manifest.json: %+v, %v", manifest, err)
	}
	read, err := tarball.Image(opener, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err1 := image.ConfigName()
	got, err2 := read.ConfigName()
	if err1 != nil || err2 != nil || got != id {
		t.Errorf("id %s, want %s: %v, %v", got, id, err1, err2)
	}
	if err := validate.Image(read); err != nil {
		t.Error(err)
	}
}

func TestUnfitProgramsAreRefused(t *testing.T) {
	for text, program := range map[string][]byte{
		"no Linux program":        []byte("#!/bin/sh\n"),
		"linked dynamically":      program(elf.EM_X86_64, "", elf.PT_LOAD, elf.PT_INTERP),
		"it is for EM_MIPS":       program(elf.EM_MIPS, ""),
		"program fake-kms-plugin": nil,
	} {
		if _, err := archive.Assemble(images.Definitions()[0], program); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}

// Command build makes archives of the project's container images from its programs, and lists them.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/ci/images"
	"github.com/kmsharness/kmsharness/ci/images/archive"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

func main() {
	bin := flag.String("bin", "bin", "folder of the programs")
	out := flag.String("out", "bin/images", "folder for the archives and their list")
	flag.Parse()
	if err := run(*bin, *out, images.All(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "build images:", err)
		os.Exit(1)
	}
}

// run writes the list last: it names only archives that are there.
func run(bin, out string, definitions []images.Definition, stdout io.Writer) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var list []images.Image
	for _, d := range definitions {
		image, err := build(d, bin, out)
		if err != nil {
			return err
		}
		list = append(list, image)
	}
	if err := atomicfile.WriteJSON(filepath.Join(out, images.ListFile), list, 0o644); err != nil {
		return err
	}
	return table(stdout, list)
}

func build(d images.Definition, bin, out string) (images.Image, error) {
	program, err := os.ReadFile(filepath.Join(bin, d.Program))
	if err != nil {
		return images.Image{}, fmt.Errorf("image %s: %w", d.Repository, err)
	}
	image, text, err := archive.Build(d, program)
	if err != nil {
		return image, err
	}
	image.Archive, image.Size = d.Name+".tar", int64(len(text))
	if err := archive.CheckSize(d, image); err != nil {
		return image, err
	}
	return image, atomicfile.Write(filepath.Join(out, image.Archive), text, 0o644)
}

func table(w io.Writer, list []images.Image) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "IMAGE\tCONTENT TAG\tDIGEST\tSIZE")
	for _, i := range list {
		_, tag, _ := strings.Cut(i.Content, ":")
		fmt.Fprintf(t, "%s\t%s\t%s\t%.1f MiB\n", i.Reference, tag, i.Digest, archive.MiB(i.Size))
	}
	return t.Flush()
}

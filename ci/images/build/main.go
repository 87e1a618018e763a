// Command build makes archives of the project's container images from its programs, and prints a table of them.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/kmsharness/kmsharness/ci/images"
	"github.com/kmsharness/kmsharness/ci/images/archive"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
)

func main() {
	bin := flag.String("bin", "bin", "folder of the programs")
	out := flag.String("out", "bin/images", "folder for the archives")
	flag.Parse()
	if err := run(*bin, *out, images.All(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "build images:", err)
		os.Exit(1)
	}
}

func run(bin, out string, definitions []images.Definition, stdout io.Writer) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "IMAGE\tARCHIVE\tSIZE")
	for _, d := range definitions {
		program, err := os.ReadFile(filepath.Join(bin, d.Program))
		if err != nil {
			return fmt.Errorf("image %s: %w", d.Repository, err)
		}
		image, err := archive.Assemble(d, program)
		if err != nil {
			return err
		}
		text, err := archive.Of(image, d.Reference())
		if err != nil {
			return err
		}
		if err := archive.CheckSize(d, text); err != nil {
			return err
		}
		file := filepath.Join(out, d.Name+".tar")
		if err := atomicfile.Write(file, text, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(t, "%s\t%s\t%.1f MiB\n", d.Reference(), file, archive.MiB(text))
	}
	return t.Flush()
}

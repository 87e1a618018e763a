package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/internal/atomicfile"
	"github.com/kmsharness/kmsharness/internal/choice"
	"github.com/kmsharness/kmsharness/internal/printer"
	"github.com/kmsharness/kmsharness/scenarios"
)

type draft struct{ name, title, area, from string }

func newScenarioNewCommand(x standard.Extensions) *cobra.Command {
	var d draft
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Begin a scenario with the steps of the closest one of the catalogue",
		Long: `Write NAME.yaml into this folder, and the schema for editors beside it: your words at the top, and the steps of the scenario of the catalogue that has most in common
with them, to be changed. What the flags leave out is asked. An existing file is never overwritten.`,
		Example: `  kmsharness scenario new hsm-busy --area plugin --title "A busy plugin is unhealthy."
  kmsharness scenario new lb-slow --from load-balancer-slow`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d.name = strings.TrimSuffix(args[0], ".yaml")
			if err := d.ask(bufio.NewReader(cmd.InOrStdin()), cmd.OutOrStdout()); err != nil {
				return err
			}
			return d.write(x, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&d.title, "title", "", "one sentence that says what must hold")
	choice.Add(cmd, &d.area, "area", "", "", strings.Join(scenario.Areas(), ", "), scenario.Areas()...)
	cmd.Flags().StringVar(&d.from, "from", "", "scenario of the catalogue to begin with (default: the closest)")
	return cmd
}

// ask fills in what the flags left out.
func (d *draft) ask(in *bufio.Reader, out io.Writer) (err error) {
	if d.title == "" {
		if d.title, err = answer(in, out, "What must hold, in one sentence? "); err != nil {
			return fmt.Errorf("title: %w (or use --title)", err)
		}
	}
	if d.area == "" {
		if d.area, err = answer(in, out, "Which area? ("+strings.Join(scenario.Areas(), " ")+") "); err != nil {
			return fmt.Errorf("area: %w (or use --area)", err)
		}
	}
	if !slices.Contains(scenario.Areas(), d.area) {
		return fmt.Errorf("area %q: expected %s", d.area, choice.Or(scenario.Areas()))
	}
	return nil
}

func answer(in *bufio.Reader, out io.Writer, question string) (string, error) {
	fmt.Fprint(out, question)
	line, err := in.ReadString('\n')
	if line = strings.TrimSpace(line); line != "" {
		return line, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("no answer")
	}
	return "", err
}

func (d *draft) write(x standard.Extensions, out io.Writer) error {
	from, err := d.closest()
	if err != nil {
		return err
	}
	text, file := d.text(from), d.name+".yaml"
	parser, err := x.Parser()
	if err != nil {
		return err
	}
	if _, err := parser.Parse(file, text); err != nil {
		return err
	}
	if err := writeNew(file, text); err != nil {
		return err
	}
	if err := writeSchema(x); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s has the steps of %s: change them, and watch what comes of it:\n  kmsharness scenario watch %s\n", file, from, file)
	return err
}

// closest names the scenario to begin with. Those in Go have no file.
func (d *draft) closest() (string, error) {
	all, err := scenarios.Load()
	if err != nil {
		return "", err
	}
	all = slices.DeleteFunc(all, func(s *scenario.Scenario) bool { return s.File == "" })
	if d.from == "" {
		return scenario.Closest(all, d.area, d.name, d.title).Name, nil
	}
	if _, err := named(all, d.from); err != nil {
		return "", fmt.Errorf("--from %w", err)
	}
	return d.from, nil
}

func (d *draft) text(from string) []byte {
	source, _ := scenarios.Source(from)
	_, spec, _ := bytes.Cut(source, []byte("\nspec:"))
	return fmt.Appendf(nil, "# yaml-language-server: $schema="+scenario.SchemaFile+"\napiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  title: %q\n  area: %s\nspec: # as %s: change it%s",
		scenario.APIVersion, scenario.KindName, d.name, d.title, d.area, from, spec)
}

// writeSchema puts the schema beside the file, for editors: that of this program, whatever was there.
func writeSchema(x standard.Extensions) error {
	schema, err := schemaOf(x)
	if err != nil {
		return err
	}
	return atomicfile.WriteTo(scenario.SchemaFile, func(w io.Writer) error { return printer.WriteJSON(w, schema) })
}

func writeNew(file string, text []byte) (err error) {
	f, err := os.OpenFile(filepath.Clean(file), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already, and is not overwritten", file)
	}
	if err != nil {
		return fmt.Errorf("new scenario: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(text)
	return err
}

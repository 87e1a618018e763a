package printer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func TestPrint(t *testing.T) {
	long := strings.Repeat("ä", 120)
	table := Table{Columns: []string{"ID", "TEXT", "SOURCE"}, Narrow: 2, Rows: [][]string{{"A", long, "docs"}, {"BBB", "short"}}}
	value := []map[string]string{{"id": "A"}}
	for format, want := range map[string]string{
		"":     "ID   TEXT\nA    " + strings.Repeat("ä", 94) + "…\nBBB  short\n",
		"wide": "ID   TEXT" + strings.Repeat(" ", 118) + "SOURCE\nA    " + long + "  docs\nBBB  short\n",
		"json": "[\n  {\n    \"id\": \"A\"\n  }\n]\n",
		"yaml": "- id: A\n",
	} {
		cmd := &cobra.Command{}
		o := AddFlag(cmd, Wide)
		if format != "" {
			if err := cmd.ParseFlags([]string{"-o", format}); err != nil {
				t.Fatal(err)
			}
		}
		var out strings.Builder
		if err := o.PrintTable(&out, value, table); err != nil || out.String() != want {
			t.Errorf("%q: %v\n%s\nwant\n%s", format, err, out.String(), want)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(line); format == "" && n > Width+1 {
				t.Errorf("a line of %d columns", n)
			}
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	cmd := &cobra.Command{}
	AddFlag(cmd, Wide)
	if err := cmd.ParseFlags([]string{"-o", "xml"}); err == nil || !strings.Contains(err.Error(), `"xml" for "-o, --output" flag: expected json, yaml or wide`) {
		t.Error(err)
	}
}

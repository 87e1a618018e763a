package recorder

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kmsharness/kmsharness/harness/cluster"
)

func TestLogCopyTakesWhatWasAppended(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		f, err := os.OpenFile(filepath.Join(from, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("old.log", "before\n")
	c, err := MarkLogs([]cluster.LogDir{{Dir: from, Prefix: "n-"}}, to)
	if err != nil {
		t.Fatal(err)
	}
	write("old.log", "after\n")
	write("admin.kubeconfig", "secret")
	write("new.jsonl", "all\n")
	if err := c.Copy(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"n-old.log": "after\n", "n-new.jsonl": "all\n"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

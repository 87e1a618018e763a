package cli

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
)

// print is what a person needs to work with the environment; its first line can be pasted into a shell.
func (s upState) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "\nexport KUBECONFIG=%s\n\n", s.Kubeconfig)
	fmt.Fprintln(t, "NODE\tAPI SERVER\tKEY\tPLUGIN\tCONTROL")
	for _, n := range s.Nodes {
		name, server := n.Name, n.APIServer
		for _, p := range n.Plugins {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", name, server, p.KeyID, p.Socket, p.Control)
			name, server = "", "" // told once
		}
	}
	fmt.Fprintf(t, "\nremote KMS:\t%s\n", s.RemoteKMS)
	fmt.Fprintf(t, "logs:\t%s (reporters, aggregator), %s (control plane, plugins)\n", s.Logs, s.ControlPlaneLogs)
	fmt.Fprintf(t, "history:\t%s\n", s.History)
	if len(s.Nodes) > 0 && len(s.Nodes[0].Plugins) > 0 {
		control := "unix://" + s.Nodes[0].Plugins[0].Control
		fmt.Fprintf(t, "break it:\tkmsharness plugin inject hang method=Status --control %s\n", control)
		fmt.Fprintf(t, "mend it:\tkmsharness plugin release --control %s\n", control)
	}
	fmt.Fprintf(t, "end it:\t%s\n", cmp.Or(s.End, "kmsharness down"))
	return t.Flush()
}

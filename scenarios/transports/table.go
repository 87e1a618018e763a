package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// cell is a measured value, or the reason why there is none.
type cell struct {
	text  string
	value float64 // of a bar; 0: it has none
}

// row is one measure with each way of publishing.
type row struct {
	nodes int
	form  string
	what  string
	cells map[string]cell // by way
}

// table is the comparison.
type table struct {
	backend string
	ways    []string
	rows    []row
	notes   []string
}

// put sets a cell, in a new row if there is no such yet.
func (t *table) put(nodes int, form, what, way string, c cell) {
	i := slices.IndexFunc(t.rows, func(r row) bool { return r.nodes == nodes && r.form == form && r.what == what })
	if i < 0 {
		t.rows, i = append(t.rows, row{nodes, form, what, map[string]cell{}}), len(t.rows)
	}
	t.rows[i].cells[way] = c
}

// note adds a line below the table, once.
func (t *table) note(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(t.notes, line) {
		t.notes = append(t.notes, line)
	}
}

// Markdown is the table.
func (t *table) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| nodes | form | %s | %s |\n|---|---|---|%s\n", t.backend, strings.Join(t.ways, " | "), strings.Repeat("---|", len(t.ways)))
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %d | %s | %s |", r.nodes, r.form, r.what)
		for _, way := range t.ways {
			c, measured := r.cells[way]
			if !measured {
				c.text = "not run"
			}
			fmt.Fprintf(&b, " %s |", strings.ReplaceAll(c.text, "|", "\\|"))
		}
		b.WriteString("\n")
	}
	for _, n := range t.notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	return b.String()
}

// loaded puts what API servers are asked for.
func (t *table) loaded(nodes int, form, way string, l load) {
	number := func(v float64) cell { return cell{fmt.Sprintf("%.0f", v), v} }
	t.put(nodes, form, "reports written per node-hour", way, number(l.reports))
	t.put(nodes, form, "other writes per node-hour (rollup, EncryptionHealth)", way, number(l.rest))
	t.put(nodes, form, "lease writes of the aggregators per node-hour", way, number(l.leases))
	t.put(nodes, form, "reads per node-hour", way, number(l.reads))
	t.put(nodes, form, "KB written per node-hour", way, cell{fmt.Sprintf("%.1f", l.bytes/1000), l.bytes / 1000})
	t.put(nodes, form, "field managers that own reports and rollups", way, number(float64(l.managers)))
	if l.refused > 0 {
		t.put(nodes, form, "writes refused", way, number(float64(l.refused)))
	}
}

// behaved puts what a fault did.
func (t *table) behaved(nodes int, form, way string, f fault, b behaviour, broken []string) {
	t.put(nodes, form, f.name, way, cell{b.text(f.plugin, broken), b.gap.Seconds() / max(b.interval.Seconds(), 1)})
}

// text is one cell: what the rollup said, and how long it took until all was well.
func (b behaviour) text(plugin bool, violated []string) string {
	var parts []string
	switch {
	case len(b.statuses) == 0:
		return "not measured: " + strings.Join(append([]string{"the fault did not begin or end"}, violated...), ", ")
	case !b.affected:
		parts = append(parts, "not affected")
	default:
		parts = append(parts, strings.Join(b.statuses, "→"))
		if b.unknown > 0 {
			parts = append(parts, "Unknown "+seconds(b.unknown))
		}
		if b.detection > 0 && plugin {
			parts = append(parts, "detected "+seconds(b.detection))
		}
		if b.gap > 2*b.interval {
			parts = append(parts, "no report for "+seconds(b.gap))
		}
		if b.recovered {
			parts = append(parts, "well "+seconds(b.recovery)+" after")
		} else {
			parts = append(parts, "NOT WELL AT THE END")
		}
	}
	if b.accused && !plugin {
		parts = append(parts, "REPORTED BROKEN")
	}
	for _, v := range violated {
		parts = append(parts, "VIOLATES "+v)
	}
	return strings.Join(parts, ", ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/backend/choose"
	"github.com/kmsharness/kmsharness/harness/backend/sim"
	"github.com/kmsharness/kmsharness/harness/backend/sim/store"
	"github.com/kmsharness/kmsharness/harness/check"
	"github.com/kmsharness/kmsharness/harness/engine"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/result"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/scenario/standard"
	"github.com/kmsharness/kmsharness/reporter/publish"
	"github.com/kmsharness/kmsharness/scenarios"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "transports:", err)
		os.Exit(2)
	}
}

// comparison is what the flags ask for.
type comparison struct {
	backend string
	ways    []string
	forms   []string
	nodes   []int
	faults  string
	out     string
	log     io.Writer
	table   table
	objects map[string]sim.Filled // by form and number of nodes
}

// mostAtOnce is how many nodes are simulated with faults. With more the number of reports that one object takes is the question, and not the fault.
const mostAtOnce = 30

func run(ctx context.Context, args []string, w, log io.Writer) (err error) {
	c, err := parse(args, log)
	if err != nil {
		return err
	}
	b, err := c.made()
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, b.Close(ctx))
	}()
	return errors.Join(c.all(ctx, b), c.write(w)) // of an interrupted one, what was measured
}

func parse(args []string, log io.Writer) (*comparison, error) {
	f := flag.NewFlagSet("transports", flag.ContinueOnError)
	c := &comparison{log: log, objects: map[string]sim.Filled{}}
	f.StringVar(&c.backend, "backend", sim.Name, "sim or local")
	f.StringVar(&c.out, "out", "_transports", "folder for histories, the table and the plots")
	f.StringVar(&c.faults, "faults", "", "only faults with this text in the name")
	ways := f.String("ways", strings.Join(scenario.Connectivities(), ","), "ways of publishing")
	forms := f.String("forms", strings.Join(scenario.Contracts(), ","), "wire forms without a fault; faults are run with "+scenario.ContractConditions+" only")
	nodes := f.String("nodes", "", "control-plane nodes; default 3,30,100,300,3000 on sim, and 1,3 on local")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if c.backend != sim.Name && c.backend != "local" {
		return nil, fmt.Errorf("--backend %q: expected sim or local", c.backend)
	}
	if *nodes == "" {
		*nodes = map[string]string{sim.Name: "3,30,100,300,3000", "local": "1,3"}[c.backend]
	}
	most := map[string]int{sim.Name: 10_000, "local": scenario.MaxControlPlanes}[c.backend]
	for _, text := range strings.Split(*nodes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return nil, fmt.Errorf("--nodes %q: expected numbers from 1 to %d", *nodes, most)
		}
		c.nodes = append(c.nodes, n)
	}
	c.ways = strings.Split(*ways, ",")
	for _, way := range c.ways {
		if !slices.Contains(scenario.Connectivities(), way) {
			return nil, fmt.Errorf("--ways %q: expected %s", *ways, strings.Join(scenario.Connectivities(), ", "))
		}
	}
	c.forms = strings.Split(*forms, ",")
	for _, form := range c.forms {
		if !slices.Contains(scenario.Contracts(), form) {
			return nil, fmt.Errorf("--forms %q: expected %s", *forms, strings.Join(scenario.Contracts(), ", "))
		}
	}
	c.table = table{backend: "on " + c.backend, ways: c.ways}
	return c, nil
}

// made is the backend. The simulation has the timing of production, real API servers that of the local backend.
func (c *comparison) made() (backend.Backend, error) {
	if c.backend == sim.Name {
		return sim.New(sim.Options{SSA: store.Model, Timing: sim.ProductionTiming()}), nil
	}
	return choose.New(c.backend, choose.Options{})
}

func (c *comparison) all(ctx context.Context, b backend.Backend) error {
	t := b.Timing()
	c.table.note("Interval %v, write deadline %v. A plugin's failure and recovery must be visible within %v. `not affected`: the rollup stayed False and no node was without a report for more than two intervals.",
		t.Interval, t.WriteTimeout, t.DetectionBound())
	for _, nodes := range c.nodes {
		if nodes > mostAtOnce {
			if err := c.large(ctx, nodes); err != nil {
				return err
			}
			continue
		}
		for _, way := range c.ways {
			if err := c.faulty(ctx, b, way, nodes); err != nil {
				return err
			}
		}
	}
	return c.sizes(ctx)
}

// faulty runs every fault with one way and a number of nodes, and without a fault both wire forms.
func (c *comparison) faulty(ctx context.Context, b backend.Backend, way string, nodes int) error {
	for _, form := range c.forms {
		for _, f := range faults() {
			if nodes < f.nodes || !strings.Contains(f.name, c.faults) || form != scenario.ContractConditions && f.name != steady {
				continue
			}
			if err := c.one(ctx, b, f, way, form, nodes); err != nil {
				return err
			}
		}
	}
	if nodes != 3 || !strings.Contains("compromised reporter", c.faults) {
		return nil
	}
	return c.compromised(ctx, b, way)
}

// ran is a run and what came of it.
type ran struct {
	result  result.Result
	verdict check.Verdict
	events  []history.Event
	used    map[string]usage
}

func (c *comparison) execute(ctx context.Context, b backend.Backend, s *scenario.Scenario) (ran, error) {
	m, out := &meter{Backend: b}, ran{}
	if c.backend != sim.Name {
		b = m
	}
	began := time.Now()
	out.result = engine.Execute(ctx, b, s, engine.Execution{Out: c.out, Artifacts: engine.ArtifactsNever, Verdict: func(v check.Verdict) { out.verdict = v },
		Options: engine.Options{Runtime: engine.RealTime(clock.RealClock{}), Faults: standard.Faults{}, Seed: 1, Reproduce: "make compare-transports"}})
	fmt.Fprintf(c.log, "%s: %s in %v %v\n", s.Name, out.result.Status, time.Since(began).Round(time.Second), out.result.Reasons)
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	if out.result.Status == result.NotSupported || out.result.Status == result.CouldNotRun {
		return out, nil
	}
	var err error
	if out.events, err = history.ReadFile(filepath.Join(out.result.Dir, result.HistoryFile)); err != nil {
		return out, fmt.Errorf("read the history of %s: %w", s.Name, err)
	}
	out.used = m.taken()
	return out, nil
}

func (c *comparison) one(ctx context.Context, b backend.Backend, f fault, way, form string, nodes int) error {
	r, err := c.execute(ctx, b, f.scenario(way, form, nodes))
	if err != nil {
		return err
	}
	if len(r.events) == 0 {
		c.table.put(nodes, form, f.name, way, cell{text: string(r.result.Status) + ": " + strings.Join(r.result.Reasons, ", ")})
		return nil
	}
	var violated []string
	switch r.result.Status {
	case result.Failed:
		violated = violations(r.verdict)
	case result.Inconclusive:
		c.table.note("%s with %s on %d nodes: inconclusive, the machine was too busy.", f.name, way, nodes)
	}
	facts := read(r.events)
	switch f.name {
	case steady:
		c.table.loaded(nodes, form, way, facts.steady())
		c.used(nodes, form, way, r.used)
		for _, v := range violated {
			c.table.note("%s, %d nodes, no fault: violates %s.", way, nodes, v)
		}
	case pluginFails:
		c.table.put(nodes, form, f.name+": seen after", way, latency(r.verdict.Detection, violated))
		c.table.put(nodes, form, f.name+": taken back after", way, latency(r.verdict.Recovery, violated))
	default:
		c.table.behaved(nodes, form, way, f, facts.behaviour(f.span()), violated)
	}
	return nil
}

func latency(l check.Latency, violated []string) cell {
	text := l.String()
	for _, v := range violated {
		text += ", VIOLATES " + v
	}
	return cell{text: text, value: l.Median.Seconds()}
}

// used puts processor time and memory, of what the history names processes of.
func (c *comparison) used(nodes int, form, way string, all map[string]usage) {
	for _, role := range []string{history.RoleAPIServer, history.RoleEtcd, history.RoleAggregator, history.RoleReporter} {
		if u, ok := all[role]; ok {
			c.table.put(nodes, form, role+": processor time (%), of one of them", way, cell{fmt.Sprintf("%.2f", 100*u.cpu), 100 * u.cpu})
			c.table.put(nodes, form, role+": resident memory (MB), of the largest", way, cell{fmt.Sprintf("%.1f", float64(u.memory)/1e6), float64(u.memory) / 1e6})
		}
	}
	if len(all) == 0 {
		c.table.note("Processor time and memory are not in this table: a simulation has none. `--backend local` measures them.")
	}
}

// compromised makes every attempt of the catalogue's scenario.
func (c *comparison) compromised(ctx context.Context, b backend.Backend, way string) error {
	all, err := scenarios.Load()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(s *scenario.Scenario) bool { return s.Name == "reporter-may-write-its-own-entry-only" })
	if i < 0 {
		return errors.New("the catalogue has no scenario reporter-may-write-its-own-entry-only")
	}
	s := *all[i]
	s.Name, s.Topology.Connectivity = "compromised-"+way, way
	s.Steps = append(s.Steps, step(&scenario.Attempt{As: "cp-1", Method: "apply-condition", Node: "cp-1", Expect: scenario.AttemptDenied}))
	r, err := c.execute(ctx, b, &s)
	if err != nil {
		return err
	}
	refused, attempts := denied(r.events)
	c.table.put(3, scenario.ContractConditions, "compromised reporter: requests denied (the last is a forged report of its own node)", way, cell{text: fmt.Sprintf("%d of %d", refused, attempts)})
	return nil
}

// large is more nodes than are simulated with faults: what one object takes. Reporters write through three API servers, an aggregator through one.
func (c *comparison) large(ctx context.Context, nodes int) error {
	b := sim.New(sim.Options{SSA: store.Model})
	full, err := c.filled(ctx, nodes, scenario.ContractConditions)
	if err != nil {
		return err
	}
	for _, way := range c.ways {
		const what = "reports that fail, of all (through 3 API servers, the stream through 1)"
		if full.Refusal != nil {
			c.table.put(nodes, scenario.ContractConditions, what, way, cell{text: fmt.Sprintf("not run: the object is full with %d nodes", full.Nodes)})
			continue
		}
		servers := 3
		if way == history.ConnectStream {
			servers = 1
		}
		r, err := b.Load(ctx, sim.Load{Nodes: nodes, Servers: servers, Timing: sim.ProductionTiming(), Settle: 1, For: 3, Seed: 1})
		if err != nil {
			return err
		}
		fmt.Fprintf(c.log, "%s, %d nodes: %+v\n", way, nodes, r)
		c.table.put(nodes, scenario.ContractConditions, what, way, cell{fmt.Sprintf("%d of %d", r.Failed, r.Writes), float64(r.Failed) / float64(max(r.Writes, 1))})
	}
	return nil
}

// sizes puts how the object grows, which no way of publishing changes: each node has a field manager of its own with all of them.
func (c *comparison) sizes(ctx context.Context) error {
	for _, nodes := range c.nodes {
		for _, form := range c.forms {
			f, err := c.filled(ctx, nodes, form)
			if err != nil {
				return err
			}
			text := fmt.Sprintf("%.1f KB, of which managedFields %.1f KB", float64(f.Bytes)/1000, float64(f.ManagedFields)/1000)
			if f.Refusal != nil {
				text = fmt.Sprintf("full with %d nodes: %s", f.Nodes, text)
			}
			for _, way := range c.ways {
				c.table.put(nodes, form, "size of the operator's CR, one plugin each", way, cell{text, float64(f.Bytes) / 1000})
			}
			if f.Refusal != nil {
				c.table.note("One more node than %d in the form %s gets: %v.", f.Nodes, form, shortened(f.Refusal.Error()))
			}
		}
	}
	return nil
}

// filled is the operator's CR with reports of so many nodes. Thousands take a minute, so each is made once.
func (c *comparison) filled(ctx context.Context, nodes int, form string) (sim.Filled, error) {
	key := fmt.Sprint(form, nodes)
	if f, made := c.objects[key]; made {
		return f, nil
	}
	f, err := sim.New(sim.Options{SSA: store.Model}).Fill(ctx, nodes, 1, publish.Form(form), "")
	if err == nil {
		c.objects[key] = f
	}
	return f, err
}

func shortened(text string) string {
	const most = 160
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

func (c *comparison) write(w io.Writer) error {
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	has := func(texts ...string) func(row) bool {
		return func(r row) bool {
			return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(r.what, text) })
		}
	}
	var names []string
	for _, f := range faults()[2:] {
		names = append(names, f.name)
	}
	files := map[string]string{
		"transports.md":  c.table.Markdown(),
		"load.svg":       c.table.plot("Written to the API per node-hour", "KB", has("KB written")),
		"latency.svg":    c.table.plot("A plugin fails and recovers: median until the rollup shows it", "s", has("seen after", "taken back after")),
		"gaps.svg":       c.table.plot("Longest time of a node without a report, in intervals", "I", func(r row) bool { return slices.Contains(names, r.what) }),
		"object.svg":     c.table.plot("Size of the operator's CR", "KB", has("size of the operator's CR")),
		"processors.svg": c.table.plot("Processor time of one process, without a fault", "%", has("processor time")),
		"memory.svg":     c.table.plot("Resident memory of the largest process of a role", "MB", has("resident memory")),
	}
	for name, text := range files {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(c.out, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
	}
	_, err := io.WriteString(w, files["transports.md"])
	return err
}

package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// plan is what the scenario is made of.
type plan struct {
	seed    uint64
	objects int
	spread  time.Duration
}

// perObject is what a switch takes for each object on two busy cores, about, and leastSpread what it takes without any.
const (
	perObject   = 6 * time.Millisecond
	leastSpread = 4 * time.Second
)

// noticed is when every API server has asked for Status since a rotation, and so encrypts with the new KEK.
const noticed = "62s"

// scenario is KMS(1) → aescbc → KMS(2) → clear text, with a rotation in between and a switch that is taken back in its middle.
func (p plan) scenario() *scenario.Scenario {
	if p.spread == 0 {
		p.spread = leastSpread + time.Duration(p.objects)*perObject
	}
	d := &drawing{plan: p, rng: rand.New(rand.NewPCG(p.seed, 0))}
	s := &scenario.Scenario{
		Name:  fmt.Sprintf("encryption-large-%d", p.objects),
		Title: fmt.Sprintf("%d objects through every type of encryption, with API servers killed at random points: none is lost, none stays under a removed key.", p.objects),
		Area:  "encryption-type", Labels: []string{"slow", "large"}, Covers: []string{"S3-21", "S3-06", "S3-08"},
	}
	s.Steps = append(s.Steps, p.write()...)
	s.Steps = append(s.Steps, d.during(to("aescbc", "2")), p.only("aescbc-2", "kms-1"))
	s.Steps = append(s.Steps, d.during(to("KMS", "2")), p.only("kms-2", "aescbc-2"))
	s.Steps = append(s.Steps, step(&scenario.Rotate{}), scenario.Step{Wait: scenario.D(noticed)},
		d.during(&scenario.Data{Op: scenario.DataMigrate}), within(`data.keys["kms-2"] == 1`))
	s.Steps = append(s.Steps, scenario.Step{Parallel: []scenario.Step{step(to("identity")), later(step(to("KMS", "2")), p.spread/2)}}, p.only("kms-2", "identity"))
	s.Steps = append(s.Steps, d.during(to("identity")), p.only("identity", "kms-2"))
	s.Steps = append(s.Steps, step(&scenario.Data{Op: scenario.DataVerify}), within("data.lost == 0"), step(to("KMS", "1")), p.only("kms-1", "identity"))
	return s.WithDefaults()
}

// write is the objects, most of them small.
func (p plan) write() (steps []scenario.Step) {
	for _, share := range []struct{ size, share int }{{64, 2}, {256, 4}, {2048, 4}} {
		steps = append(steps, step(&scenario.Data{Op: scenario.DataWrite, Count: max(1, p.objects*share.share/10), Size: share.size}))
	}
	return steps
}

func (p plan) only(is, was string) scenario.Step {
	return within(fmt.Sprintf("data.under[%q] >= %d && data.under[%q] == 0", is, p.objects, was))
}

func to(kind string, keyIDs ...string) scenario.Action {
	return &scenario.Encryption{Type: kind, KeyIDs: keyIDs}
}

func step(a scenario.Action) scenario.Step { return scenario.Step{Action: a} }

func later(s scenario.Step, d time.Duration) scenario.Step {
	s.After = scenario.D(fmt.Sprintf("%dms", d.Milliseconds()))
	return s
}

func within(cel string) scenario.Step {
	return scenario.Step{Expect: &scenario.Expectation{Mode: scenario.ModeWithin, CEL: cel, Bound: scenario.D("2I")}}
}

// drawing draws what is killed.
type drawing struct {
	plan
	rng *rand.Rand
}

// during kills API servers, one after another, while something is done: there is always one that answers.
func (d *drawing) during(a scenario.Action) scenario.Step {
	var kills []scenario.Step
	for range 2 + d.rng.IntN(2) {
		n := fmt.Sprintf("cp-%d", 1+d.rng.IntN(3))
		at := time.Duration(d.rng.Int64N(int64(d.spread / 3)))
		server := scenario.Selector{Role: history.RoleAPIServer, Node: n}
		kills = append(kills,
			later(step(&scenario.Process{Do: scenario.VerbKill, Target: server}), at),
			later(step(&scenario.Process{Do: scenario.VerbStart, Target: server}), time.Duration(d.rng.Int64N(int64(3*time.Second)))))
	}
	return scenario.Step{Parallel: []scenario.Step{step(a), {Repeat: &scenario.Repeat{Times: 1, Steps: kills}}}}
}

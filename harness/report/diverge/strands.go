package diverge

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// strandSteps is the strand of what the scenario did.
const strandSteps = "scenario"

// unraveller takes a history apart.
type unraveller struct {
	strands map[string][]Saying
	origin  time.Time
	steps   time.Time         // when the scenario's own timeline began
	names   map[string]string // of what is drawn anew for each run
	cr      string
}

func strandsOf(events []history.Event) map[string][]Saying {
	u := &unraveller{strands: map[string][]Saying{}, names: map[string]string{}}
	sorted := history.InTime(events)
	for _, e := range sorted {
		switch {
		case e.Run != nil:
			u.cr, u.origin = e.Run.Operator, e.At
		case e.Phase != nil && e.Phase.Name == history.PhaseBefore:
			u.origin = e.At
		case e.Phase != nil && e.Phase.Name == history.PhaseSteps:
			u.steps = e.At
		}
	}
	for _, e := range sorted {
		if e.Phase != nil && e.Phase.Name == history.PhaseEnd {
			break // when recorders were closed says nothing
		}
		u.unravel(e)
	}
	return u.strands
}

// say adds to a strand what is not a repetition. What was said before the steps counts by its last word: how things come up is chance,
// and whether they came up well is judged by then.
func (u *unraveller) say(strand string, e history.Event, words ...string) {
	text := u.stable(strings.TrimSpace(strings.Join(words, " ")))
	list := u.strands[strand]
	if n := len(list); n > 0 && list[n-1].Text == text {
		return
	}
	if e.At.Before(u.steps) && strand != strandSteps {
		list = nil
	}
	u.strands[strand] = append(list, Saying{Event: e, Offset: e.At.Sub(u.origin), Text: text})
}

func (u *unraveller) unravel(e history.Event) {
	switch {
	case e.Phase != nil:
		u.say(strandSteps, e, "phase", string(e.Phase.Name))
	case e.Action != nil:
		u.say(strandSteps, e, e.Action.ID, e.Action.Verb, e.Action.Target, params(e.Action.Params), e.Action.State)
	case e.Expectation != nil:
		u.say(strandSteps, e, e.Expectation.ID, map[bool]string{true: "met", false: "NOT met"}[e.Expectation.OK])
	case e.Expected != nil:
		u.expected(e)
	case e.Call != nil:
		c := e.Call
		u.say(fmt.Sprintf("%s of plugin %s/%s", c.Method, c.Node, c.KeyID), e, c.Outcome, c.Code, c.Text, "healthz="+strconv.Quote(c.Healthz), c.Version, c.KEKID, strings.Join(c.Faults, "+"))
	case e.Request != nil:
		u.request(e)
	case e.Object != nil:
		u.object(e)
	case e.Process != nil:
		p := e.Process
		u.say(strandOf(*p), e, p.State)
	case e.Link != nil:
		u.say(strings.TrimSpace(fmt.Sprintf("link %s to %s %s", e.Link.From, e.Link.To, e.Link.Node)), e, e.Link.State)
	case e.Data != nil:
		u.say("data "+e.Data.Object, e, e.Data.Op, strconv.FormatBool(e.Data.OK), e.Data.Provider)
	}
}

// strandOf a process: "process plugin cp-1 2", "process aggregator 1".
func strandOf(p history.Process) string {
	instance := strings.TrimPrefix(strconv.Itoa(p.Instance), "0")
	return strings.Join(strings.Fields(strings.Join([]string{"process", p.Role, p.Node, p.KeyID, instance}, " ")), " ")
}

// params of an action by name.
func params(all map[string]any) string {
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(all), "map["), "]") // fmt sorts maps
}

func (u *unraveller) expected(e history.Event) {
	words := []string{"active " + strconv.FormatBool(e.Expected.KMSActive)}
	for _, n := range e.Expected.Nodes {
		words = append(words, n.Name+"/"+strings.Join(n.KeyIDs, ","))
	}
	u.say("expected nodes", e, words...)
}

// request: reads and watches come and go as connections do; what was written, and what was refused, is compared.
func (u *unraveller) request(e history.Event) {
	r := e.Request
	if (r.Verb == "get" || r.Verb == "list" || r.Verb == "watch") && r.Code < 400 {
		return
	}
	u.say(fmt.Sprintf("requests of %s: %s %s %s", r.User, r.Verb, r.Resource, r.Name), e, strconv.Itoa(r.Code), r.FieldManager)
}

func (u *unraveller) object(e history.Event) {
	resource := history.Plural(e.Object.Resource)
	for _, c := range e.Object.Conditions {
		node, isReport := contract.NodeOfCondition(c.Type)
		if !isReport || resource != u.cr {
			u.say("condition "+c.Type+" of "+resource, e, c.Status, c.Reason)
			continue
		}
		entries, err := contract.DecodeMessage(c.Message)
		if err != nil {
			u.say("report of "+node, e, "malformed", c.Message)
		}
		for _, x := range entries {
			u.say("report of "+node+"/"+x.KeyID, e, string(x.Status), x.KEKID, x.Detail)
		}
	}
	for _, t := range e.Object.HealthReports {
		u.say("typed report of "+t.NodeName+"/"+t.KeyID, e, t.Status, t.RemoteKeyID, t.Detail)
	}
}

var (
	drawn   = regexp.MustCompile(`kek-[0-9a-f]{6,}`)
	instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	port    = regexp.MustCompile(`(127\.0\.0\.1|localhost|\[::1\]):\d+`)
	folder  = regexp.MustCompile(`/(tmp|var|run)/[^\s"':,]*/`)
)

// stable leaves out of a text what differs between any two runs. Names that are drawn are numbered in the order of their appearance.
func (u *unraveller) stable(text string) string {
	text = drawn.ReplaceAllStringFunc(text, func(name string) string {
		if _, ok := u.names[name]; !ok {
			u.names[name] = fmt.Sprintf("kek#%d", len(u.names)+1)
		}
		return u.names[name]
	})
	text = instant.ReplaceAllString(text, "TIME")
	text = port.ReplaceAllString(text, "$1:PORT")
	return folder.ReplaceAllString(text, "/…/")
}

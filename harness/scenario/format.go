package scenario

import (
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/kmsharness/kmsharness/harness/history"
)

// The file format, without the verbs: one table of fields for each mapping.

// someText is a text that is not empty.
var someText = regexp.MustCompile(`\S`)

// oneLine is a text on one line, without spaces around it.
var oneLine = regexp.MustCompile(`^\S(.*\S)?$`)

func scalar(k kind) *shape { return &shape{kind: k} }

// keyword is a text out of few.
func keyword(of ...string) *shape { return &shape{kind: kindText, keywords: of} }

// formed is a text of a form.
func formed(form *regexp.Regexp) *shape { return &shape{kind: kindText, form: form} }

func listOf(item *shape) *shape { return &shape{kind: kindList, item: item} }

// some is a list that has at least one item.
func some(item *shape, most int) *shape {
	return &shape{kind: kindList, item: item, least: 1, most: most}
}

func mapping(what string, fields ...field) *shape {
	if what != "" {
		what = " in " + what
	}
	return &shape{kind: kindMapping, fields: fields, what: what}
}

// constant is a field that always has the same text.
func constant(s string) value {
	return value{shape: keyword(s), get: func() any { return s }}
}

// defaultText is a text that is left out where it has the default, and what may stand there.
func defaultText(p *string, s *shape, standard string) value {
	v := scalarValue(p, s)
	v.get = func() any {
		if *p == standard {
			return nil
		}
		return unlessZero(*p)
	}
	return v
}

// fields are those of a whole document.
func (s *Scenario) fields() []field {
	named := s.namedContract()
	form := defaultText(&named, keyword(Contracts()...), "")
	form.read = func(n *yaml.Node) { s.Contract = scalarText(n) }
	return []field{
		required("apiVersion", constant(APIVersion)),
		required("kind", constant(KindName)),
		required("metadata", mappingField("metadata",
			required("name", formField(&s.Name, nameForm)).doc("unique, the file's name without .yaml"),
			required("title", formField(&s.Title, someText)).doc("one sentence that says what must hold"),
			required("area", scalarValue(&s.Area, keyword(Areas()...))).doc("part of the catalogue"),
			optional("labels", listField(&s.Labels, listOf(formed(labelForm)))).doc("further labels, such as slow"),
			optional("onlyKind", formField(&s.OnlyKind, oneLine)).doc("what of a real cluster it judges that no other backend can: it gets the label only-kind, which the gate runs on kind"),
			optional("covers", listField(&s.Covers, listOf(formed(coversForm)))).doc("ids of the statements that it tests, such as S0-08"),
		)),
		required("spec", mappingField("spec",
			optional("topology", s.Topology.field()).doc("what is there when the steps begin"),
			optional("contract", form).doc("wire form of the reports; default conditions"),
			optional("operator", defaultText(&s.Operator, keyword(Operators()...), Operators()[0])).doc("whose custom resource is reported to; default kubeapiserver"),
			optional("clusterOperator", flowing(mappingField("clusterOperator",
				optional("degradedInertia", listField(&s.ClusterOperator.DegradedInertia, listOf(formed(inertiaForm)))).doc("how long a condition must be True or Unknown before Degraded shows it: 2m, and NodeControllerDegraded=10m for one type; default none"),
			))).doc("how the aggregator unites conditions into those of the ClusterOperator"),
			optional("excused", excusesField(&s.Excused)).doc("violations that this scenario wants"),
			required("steps", stepsField(&s.Steps)).doc("the timeline: one verb each"),
		)),
	}
}

// field is the topology. What is in it has rules of its own (validate_topology.go).
func (t *Topology) field() value {
	furtherServers := listField(&t.APIServers, some(keyword(APIServers()...), len(APIServers())))
	furtherServers.encode = func() *yaml.Node {
		if len(t.Aggregated()) == 0 {
			return nil
		}
		return textList(t.APIServers)
	}
	count := func(p *int, most int) value { v := intField(p, 1, most); v.check = nil; return v }
	connectivity := t.namedConnectivity()
	way := defaultText(&connectivity, keyword(Connectivities()...), "")
	way.read = func(n *yaml.Node) { t.Connectivity = scalarText(n) }
	return flowing(mappingField("topology",
		optional("controlPlanes", count(&t.ControlPlanes, MaxControlPlanes)).doc("nodes cp-1 to cp-N, 1 to 7; default 3"),
		optional("keyIDs", listField(&t.KeyIDs, some(formed(keyIDForm), MaxKeyIDs))).doc("plugins on each node, the write key first; default [\"1\"]"),
		optional("aggregators", count(&t.Aggregators, MaxAggregators)).doc("replicas, 1 to 3; default 1"),
		optional("apiServers", furtherServers).doc("those that encrypt, kube-apiserver among them; default kube-apiserver alone"),
		optional("profile", formField(&t.Profile, nameForm)).doc("provider that the plugins stand for, such as aws (kmsharness profiles); default none"),
		optional("start", defaultText(&t.Start, keyword(StartRunning, StartStopped), StartRunning)).doc("running: healthy; stopped: only etcd and the remote KMS run"),
		optional("lifecycle", defaultText(&t.Lifecycle, keyword(Lifecycles()...), LifecycleDirect)).doc("who switches the encryption: direct, the verb encryption; operator, an API server operator as apiserver says"),
		optional("crds", defaultText(&t.CRDs, keyword(variants()...), history.CRDsTechPreview)).doc("variant of the operators' CRDs; Default has no typed list of reports; default TechPreviewNoUpgrade"),
		optional("connectivity", way).doc("how reporters reach the API: loopback, the API server of their own node; service, any through the load balancer; altsvc, any that advertises itself, after a first one through the load balancer; stream, none: they stream to the aggregator; default loopback"),
	))
}

// flowing is a mapping on one line.
func flowing(v value) value {
	encode := v.encode
	v.encode = func() *yaml.Node {
		if n := encode(); n != nil {
			return flow(n)
		}
		return nil
	}
	return v
}

func (x *Excuse) fields() []field {
	return []field{required("invariant", scalarValue(&x.Invariant, keyword(Invariants()...))), required("reason", formField(&x.Reason, someText))}
}

func excusesField(p *[]Excuse) value {
	return value{shape: listOf(mapping("excused", new(Excuse).fields()...)),
		read: func(n *yaml.Node) {
			if n.Kind != yaml.SequenceNode {
				return
			}
			for _, item := range n.Content {
				var x Excuse
				readFields(item, x.fields())
				*p = append(*p, x)
			}
		},
		get: func() any { return nil },
		encode: func() *yaml.Node {
			if len(*p) == 0 {
				return nil
			}
			list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
			for _, x := range *p {
				list.Content = append(list.Content, flow(encodeFields(x.fields())))
			}
			return list
		},
	}
}

// stepShape decides by the verb, so that a message can say what the fields of that verb are.
func stepShape() *shape { return &shape{custom: checkStep} }

// Text of a step that are no verb.
const (
	keyExpect   = "expect"
	keyHolds    = "holds"
	keyNever    = "never"
	keyParallel = "parallel"
	keyRepeat   = "repeat"
	keyUntil    = "until"
	keyWait     = "wait"
	keyWithin   = "within"
	keyFor      = "for"
	keyAt       = "at"
	keyAfter    = "after"
	keyOrigin   = "origin"
	keyGiven    = "given"
)

// keywords are what a step can be: a verb or one of these; it has exactly one.
func keywords() []string {
	keywords := []string{}
	for _, v := range Verbs() {
		keywords = append(keywords, string(v))
	}
	return append(keywords, keyExpect, keyHolds, keyNever, keyParallel, keyRepeat, keyWait)
}

// stepFields are the fields of a step with a word, for the parser and for editors.
func stepFields(of string) []field {
	for _, d := range definitions() {
		if string(d.verb) == of {
			return append([]field{required(of, value{shape: actionShape(d.make())}).doc(d.about)}, new(Step).fields()[2:]...)
		}
	}
	var s Step
	s.begin(of)
	fields := s.fields()
	if s.Expect == nil && s.Repeat == nil { // parallel and wait
		i := 0
		if of == keyWait {
			i = 1
		}
		fields = append([]field{required(of, fields[i].value)}, fields[2:]...)
	}
	fields[0] = fields[0].doc(map[string]string{
		keyExpect: "becomes true within a time", keyHolds: "is true now and stays true for a time", keyNever: "stays false for a time",
		keyParallel: "steps that go on at the same time", keyRepeat: "steps that are done several times", keyWait: "lets time pass; the invariants are judged meanwhile",
	}[of])
	return fields
}

// actionShape is the shape of an action's arguments.
func actionShape(a Action) *shape {
	s := mapping(string(a.Verb()), a.fields()...)
	if _, open := a.(interface{ readOpen(*yaml.Node) }); open {
		s.open = scalar(kindAny)
	}
	return s
}

package scenario

import (
	"regexp"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// someText is a text that is not empty.
var someText = regexp.MustCompile(`\S`)

// oneLine is a text on one line, without spaces around it.
var oneLine = regexp.MustCompile(`^\S(.*\S)?$`)

// The file format as a table. What depends on more than one value is in the rules (validate.go and its neighbours).

func scalar(k kind) *shape { return &shape{kind: k} }

// word is a text out of few.
func word(of ...string) *shape { return &shape{kind: kindText, words: of} }

// formed is a text of a form.
func formed(form *regexp.Regexp) *shape { return &shape{kind: kindText, form: form} }

// integer is a whole number between bounds, which the rules know as well.
func integer(least, most int) *shape { return &shape{kind: kindInt, least: least, most: most} }

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

func optional(name string, s *shape) field { return field{name: name, shape: s} }

func required(name string, s *shape) field { return field{name: name, shape: s, required: true} }

// file is the shape of a whole document.
func fileShape() *shape {
	return mapping("the scenario",
		required("apiVersion", word(APIVersion)),
		required("kind", word(KindName)),
		required("metadata", metadataShape()),
		required("spec", mapping("spec",
			optional("topology", topologyShape()).says("what is there when the steps begin"),
			optional("contract", word(Contracts()...)).says("wire form of the reports; default conditions"),
			optional("operator", word(Operators()...)).says("whose custom resource is reported to; default kubeapiserver"),
			optional("clusterOperator", mapping("clusterOperator",
				optional("degradedInertia", listOf(formed(inertiaForm))).says("how long a condition must be True or Unknown before Degraded shows it: 2m, and NodeControllerDegraded=10m for one type; default none"),
				optional("unknownStatus", word(contract.UnknownRules()...)).says("yields: a condition that is Unknown yields to bad ones; is-bad: it is one of them, as in library-go; default yields"),
			)).says("how the aggregator unites conditions into those of the ClusterOperator"),
			optional("excused", listOf(mapping("excused",
				required("invariant", word(Invariants()...)),
				required("reason", formed(someText)),
			))).says("violations that this scenario wants"),
			required("steps", some(stepShape(), maxSteps)).says("the timeline: one verb each"),
		)),
	)
}

func metadataShape() *shape {
	return mapping("metadata",
		required("name", formed(nameForm)).says("unique, the file's name without .yaml"),
		required("title", formed(someText)).says("one sentence that says what must hold"),
		required("area", word(Areas()...)).says("part of the catalogue"),
		optional("labels", listOf(formed(labelForm))).says("further labels, such as slow"),
		optional("onlyKind", formed(oneLine)).says("what of a real cluster it judges that no other backend can: it gets the label only-kind, which the gate runs on kind"),
		optional("covers", listOf(formed(coversForm))).says("ids of the statements that it tests, such as S0-08"),
	)
}

func topologyShape() *shape {
	return mapping("topology",
		optional("controlPlanes", integer(1, MaxControlPlanes)).says("nodes cp-1 to cp-N, 1 to 7; default 3"),
		optional("keyIDs", some(formed(keyIDForm), MaxKeyIDs)).says("plugins on each node, the write key first; default [\"1\"]"),
		optional("aggregators", integer(1, MaxAggregators)).says("replicas, 1 to 3; default 1"),
		optional("apiServers", some(word(APIServers()...), len(APIServers()))).says("those that encrypt, kube-apiserver among them; default kube-apiserver alone"),
		optional("profile", formed(nameForm)).says("provider that the plugins stand for, such as aws (kmsharness profiles); default none"),
		optional("start", word(StartRunning, StartStopped)).says("running: healthy; stopped: only etcd and the remote KMS run"),
		optional("lifecycle", word(Lifecycles()...)).says("who switches the encryption: direct, the verb encryption; operator, an API server operator as apiserver says"),
		optional("crds", word(variants()...)).says("variant of the operators' CRDs; Default has no typed list of reports; default TechPreviewNoUpgrade"),
		optional("sockets", word(SocketSchemes()...)).says("what the operator names sockets after: key, kms-{keyID}.sock; hash, kms-<config-hash>.sock; default key"),
	)
}

// stepShape decides by the verb, so that a message can say what the fields of that verb are.
func stepShape() *shape { return &shape{custom: checkStep} }

// Words of a step that are no action.
const (
	wordExpect   = "expect"
	wordHolds    = "holds"
	wordNever    = "never"
	wordParallel = "parallel"
	wordRepeat   = "repeat"
	wordUntil    = "until"
	wordWait     = "wait"
	wordWithin   = "within"
	wordFor      = "for"
	wordAt       = "at"
	wordAfter    = "after"
	wordOrigin   = "origin"
)

// verbs are the words that say what a step does; a step has exactly one.
func verbs() []string {
	words := []string{}
	for _, v := range Verbs() {
		words = append(words, string(v))
	}
	return append(words, wordExpect, wordHolds, wordNever, wordParallel, wordRepeat, wordWait)
}

// verbShape is the value of a verb.
func verbShape(word string) *shape {
	duration := scalar(kindTime)
	switch word {
	case wordExpect, wordHolds, wordNever:
		return formed(someText)
	case wordWait:
		return duration
	case wordParallel:
		return some(stepShape(), maxSteps)
	case wordRepeat:
		return mapping(wordRepeat, required("times", integer(1, MaxTimes)),
			optional(wordUntil, formed(someText)).says("ends the repetition after the round in which it is true; fails if that never happens"), required("steps", some(stepShape(), maxSteps)))
	}
	return argumentShape(Verb(word))
}

func origin() field {
	return optional(wordOrigin, word(OriginSource, OriginHouse)).says(
		"what it rests on: a source (default), or a decision of this project, which fails a program of somebody else only with --strict")
}

func release() field {
	return optional("release", word(Releases()...)).says("of the operator, from now on; older: from before KMS")
}

// argumentShape is the value of an action.
func argumentShape(verb Verb) *shape {
	text, duration := scalar(kindText), scalar(kindTime)
	what := string(verb)
	plugin := mapping("plugin", optional("apiServer", word(APIServers()...)), optional("node", text), optional("keyID", text))
	process := []field{required("role", word(roles()...)), optional("apiServer", word(APIServers()...)), optional("node", text), optional("keyID", text), optional("instance", &shape{custom: checkInstance})}
	switch verb {
	case VerbInject:
		s := mapping(what, required("plugin", plugin), required("fault", text), optional("method", text))
		s.open = scalar(kindAny) // the fault's own parameters
		return s
	case VerbRelease:
		return mapping(what, required("plugin", plugin), optional("fault", text), optional("method", text))
	case VerbRotate:
		return mapping(what, optional("lag", &shape{custom: checkLag}))
	case VerbKMS:
		return mapping(what, required("op", word(append(kekOps(), accessOps()...)...)), optional("node", text), optional("kek", integer(1, maxKEKs)))
	case VerbRestart:
		return mapping(what, append(process, optional("with", word(WithKill, WithContainer)), release(),
			optional("overlap", duration).says("of a reporter: the new one starts so long before the old one ends"))...)
	case VerbStart:
		return mapping(what, append(process, release(), optional("unlisted", scalar(kindBool)).says("a plugin beside those of its node, whose socket no API server and no reporter is given"))...)
	case VerbStop, VerbKill, VerbPause, VerbResume:
		return mapping(what, process...)
	case VerbLink:
		return mapping(what, required("from", word(linkFroms()...)), required("to", word(linkTos()...)), optional("node", text),
			required("mode", word(linkModes()...)), optional("delay", duration))
	case VerbClock:
		return mapping(what, optional("node", text), optional("role", word(history.RoleAggregator)), required("mode", word(clockModes()...)), optional("by", duration))
	case VerbRefuse:
		return mapping(what, optional("role", word(refusedRoles()...)).says("whose requests; default both"), optional("node", text).says("of the API server; default all"),
			required("mode", word(append(history.RefusalModes(), history.RefuseRestore)...)).says("what is answered; restore ends it"), optional("verb", word(refusedVerbs()...)).says("of the requests; default all"),
			optional("count", integer(1, maxRefusals)).says("so many requests, then none"), optional("for", duration).says("for so long"),
			optional("retryAfter", integer(1, maxRetryAfter)).says("seconds, with too-many-requests; default 1"))
	case VerbWatches:
		return mapping(what, optional("node", text).says("of the API server; default all"), required("mode", word(watchesModes()...)).says("late: for as long as by says; expired and closed: ended now; restore: no longer late"),
			optional("by", duration))
	case VerbCredential:
		return mapping(what, required("node", text).says("whose reporter"), required("mode", word(CredentialExpire, CredentialRenew)).says(
			"expire: the reporter is restarted with one that expires soon, and has expired when the step is over; renew: a new one is in its file"))
	case VerbNode:
		return mapping(what, optional("remove", text), optional("add", text), optional("replace", text), optional("with", text), optional("reporter", word(lingers)))
	case VerbEncryption:
		return mapping(what, required("type", word(encryptionTypes()...)), optional("keyIDs", some(formed(keyIDForm), MaxKeyIDs)))
	case VerbAPIServer:
		return mapping(what, append(sections(), required("type", word(encryptionTypes()...)), optional("expect", word(apiServerOutcomes()...)),
			optional("lag", &shape{custom: checkLag}).says("how much later than the others a node's API server gets each revision that comes of it"))...)
	case VerbData:
		return mapping(what, required("op", word(dataOps()...)), optional("count", integer(1, MaxObjects)), optional("size", integer(1, MaxObjectBytes)))
	case VerbCondition:
		return mapping(what, required("type", text), optional("status", word(conditionStatuses()...)), optional("reason", text), optional("message", text),
			optional("manager", text), optional("delete", scalar(kindBool)))
	case VerbEntries:
		return mapping(what, required("count", integer(0, contract.MaxTypedReports)).says("so many in place of those from before"))
	default: // VerbAttempt
		return mapping(what, required("as", text), required("verb", word(attemptVerbs()...)), optional("resource", text), optional("subresource", text),
			optional("namespace", text), optional("name", text), optional("node", text), optional("body", scalar(kindAny)), required("expect", word(attemptOutcomes()...)))
	}
}

package library

const (
	client = "harness/altsvc/"
	server = "harness/altsvc/advertise/"
)

// failover are mutants of harness/altsvc, by statement of the sources.
func failover() []Mutant {
	return []Mutant{
		{
			Name: "altsvc-everybody-is-told", Mistake: "the addresses of API servers for each client, also for one whom RBAC does not allow them",
			File: server + "handler.go", Old: "	if !allowed {\n", New: "	if !allowed && len(ready) == 0 {\n", Test: "TestFieldIsLimited", Statements: []string{"S4-01"},
		},
		{
			Name: "altsvc-unready-are-listed", Mistake: "endpoints without a look at their readiness: clients are sent to an API server that ends",
			File: server + "endpoints.go", Old: "ready != nil && !*ready", New: "ready != nil && !*ready && port == 0", Test: "TestReadyAddresses", Statements: []string{"S4-01"},
		},
		{
			Name: "altsvc-front-believes-clients", Mistake: "a front that passes on a client's headers of a front proxy: a client that sends them becomes an administrator",
			File: server + "front.go", Old: "			if strings.HasPrefix(name, remoteHeaders) {\n", New: "			if strings.HasSuffix(name, remoteHeaders) {\n", Test: "TestFrontSpeaksForItsClients",
		},
		{
			Name: "altsvc-front-loses-the-last-response", Mistake: "a front that ends a client's connection together with that of the API server: the response on its way is lost",
			File: server + "front.go", Old: "	b.c.upstreamEnded()\n", New: "	_ = b.c.Close()\n", Test: "TestFrontSendsTheLastResponse",
		},
		{
			Name: "altsvc-flaps-back", Mistake: "the best alternative for each request, instead of the one in use: clients flap with an API server that comes and goes",
			File: client + "table.go", Old: `	if t.current != "" && !slices.Contains(s.tried, t.current) && t.usable(t.current, s) {`, New: `	if t.current == "none" {`,
			Test: "TestStickAfterBlockade", Statements: []string{"S4-02"},
		},
		{
			Name: "altsvc-blockade-forgotten", Mistake: "a dead API server that is tried again with each request",
			File: client + "table.go", Old: "blockade{until: now.Add(t.block), forever: forever}", New: "blockade{until: now, forever: forever}",
			Test: "TestNetworkErrorBlocksForTime", Statements: []string{"S4-03"},
		},
		{
			Name: "altsvc-certificate-error-retried", Mistake: "a bad certificate taken for an error of the network: after a time the client asks the impostor again",
			File: client + "services.go", Old: "	forever := isCertificateError(err)\n", New: "	forever := isCertificateError(err) && s.closed\n",
			Test: "TestCertificateErrorBlocksForever", Statements: []string{"S4-03"},
		},
		{
			Name: "altsvc-http1-is-believed", Mistake: "a field of a response over HTTP/1.1, which a proxy on the way may have added",
			File: client + "services.go", Old: "res.ProtoMajor != 2 || ", New: "", Test: "TestHTTP1IsIgnored", Statements: []string{"S4-04"},
		},
		{
			Name: "altsvc-origin-as-authority", Mistake: "the load balancer's name for an alternative: its certificate is not valid for it",
			File: client + "services.go", Old: "authority: o.Authority, options: o", New: "authority: host, options: o", Test: "TestMovesToAlternativeAndStays", Statements: []string{"S4-04"},
		},
		{
			Name: "altsvc-static-list-ignored", Mistake: "a list of hosts that is read and not used: without the load balancer the client does not start",
			File: client + "choice.go", Old: "static: static}", New: "static: static[:0]}", Test: "TestStaticListStartsWithoutLoadBalancer", Statements: []string{"S4-05"},
		},
		{
			Name: "altsvc-entries-never-expire", Mistake: "a list that is kept for ever: an address that another machine has by now is asked",
			File: client + "table.go", Old: "			return s.now.Before(e.expires) || address == t.current && s.connected(address)\n", New: "			return true\n",
			Test: "TestEntriesExpire", Statements: []string{"S4-06"},
		},
		{
			Name: "altsvc-load-balancer-first", Mistake: "alternatives for when the load balancer fails: who loses packets does not fail, and each request waits for it",
			File: client + "roundtrip.go", Old: `		address := s.next(a.tried)
		if address == "" {`, New: `		address := s.next(a.tried)
		if len(a.tried) == 0 {`, Test: "TestLoadBalancerBlackHole", Statements: []string{"S4-07"},
		},
		{
			Name: "altsvc-load-balancer-needed", Mistake: "the same, when the load balancer is taken away for good",
			File: client + "roundtrip.go", Old: `		address := s.next(a.tried)
		if address == "" {`, New: `		address := s.next(a.tried)
		if len(a.tried) == 0 {`, Test: "TestLoadBalancerRemoved", Statements: []string{"S4-11"},
		},
		{
			Name: "altsvc-members-learnt-once", Mistake: "the first field for ever: members of the control plane change, and the client needs a restart",
			File: client + "table.go", Old: "	if text == t.field {\n", New: "	if t.field != \"\" {\n", Test: "TestMembersChange", Statements: []string{"S4-08"},
		},
		{
			Name: "altsvc-silence-is-not-noticed", Mistake: "no PING on a connection that is silent: a watch waits for an API server whose machine has lost its power",
			File: client + "connections.go", Old: "SendPingTimeout: c.options.PingAfter", New: "SendPingTimeout: 0", Test: "TestBlackHoleIsFoundByPing", Statements: []string{"S4-09"},
		},
		{
			Name: "altsvc-own-machine-not-preferred", Mistake: "any API server in place of the one beside the client: each request crosses the network",
			File: client + "table.go", Old: "		if isLocal(address, local) {\n", New: "		if isLocal(address, local[:0]) {\n", Test: "TestPrefersOwnMachine", Statements: []string{"S4-10"},
		},
		{
			Name: "altsvc-write-replayed", Mistake: "a POST that is sent again after its connection broke: the first API server may have carried it out",
			File: client + "roundtrip.go", Old: "	return isSafe(a.req.Method) && a.repeatable()\n", New: "	return a.repeatable()\n", Test: "TestPostIsNotReplayed",
		},
	}
}

package library

const (
	sessions = "aggregator/streams/"
	serving  = "aggregator/controller/reports.go"
	bounds   = "aggregator/controller/bounds.go"
	sending  = "reporter/stream/"
)

// streams are mutants of the streaming transport (docs/contract.md, "Streaming").
func streams() []Mutant {
	return []Mutant{
		{
			Name: "stream-generation-not-compared", Mistake: "a healthy node is ready, whichever configuration its reporter has: a change counts as done before anybody has it",
			File: sessions + "health.go", Old: `r.Status == "True" && r.ObservedGeneration == generation`, New: `r.Status == "True"`, Test: "TestLists", Statements: []string{"S1-07", "S1-08"},
		},
		{
			Name: "stream-stands-before-it-is-shown", Mistake: "a stream that is accepted with the next write of the EncryptionHealth, whatever that says: the node is never Unknown in it",
			File: sessions + "sessions.go", Old: "!o.shown && o.since <= p.revision", New: "!o.shown", Test: "TestShown", Statements: []string{"S1-02"},
		},
		{
			Name: "stream-removed-node-speaks", Mistake: "streams of nodes that are gone: a report lands after the entry was removed, and stays",
			File: sessions + "sessions.go", Old: "		delete(s.of, node)\n", New: "", Test: "TestExpect", Statements: []string{"S1-06"},
		},
		{
			Name: "stream-surplus-counts", Mistake: "the node is Unknown when any of its streams ends, although another one carries its reports",
			File: sessions + "sessions.go", Old: "	if len(x.streams) > 0 {\n		return false\n", New: "	if len(x.streams) > MaxStreams {\n		return false\n", Test: "TestCloseLeavesTheOtherStream",
		},
		{
			Name: "stream-outbox-empty-after-reconnect", Mistake: "a report that was sent once is done with: the next stream begins without it",
			File: sending + "outbox.go", Old: "o.sequence, o.unsent, o.waits = 0, o.report != nil, false", New: "o.sequence, o.unsent, o.waits = 0, false, false", Test: "TestReportedAgain", Statements: []string{"S1-05"},
		},
		{
			Name: "stream-outbox-sends-old-reports", Mistake: "the last report is sent on a new stream however long that took",
			File: sending + "outbox.go", Old: "	if timeout <= 0 {\n", New: "	if o.due.IsZero() {\n", Test: "TestNothingOld",
		},
		{
			Name: "stream-any-acknowledgement-counts", Mistake: "an acknowledgement taken for that of the newest report, whichever it is of",
			File: sending + "outbox.go", Old: "a.GetSequence() != o.sequence || !o.waits", New: "!o.waits", Test: "TestAcknowledged",
		},
		{
			Name: "stream-client-stays", Mistake: "a client that asks the same replica again when it does not lead",
			File: sending + "rounds.go", Old: "	r.next++\n", New: "", Test: "TestRounds", Statements: []string{"S1-04"},
		},
		{
			Name: "stream-connection-kept", Mistake: "connections that outlive their streams: each reconnect adds one",
			File: sending + "publisher.go", Old: "	defer conn.Close()\n", New: "", Test: "TestConnectionOfItsOwn", Statements: []string{"S1-10"},
		},
		{
			Name: "stream-leader-not-named", Mistake: "a replica that does not lead is unavailable: clients cannot tell it from one that is broken",
			File: serving, Old: `status.Error(codes.FailedPrecondition, "this replica is not the leader")`, New: `status.Error(codes.Unavailable, "this replica is not the leader")`,
			Test: "TestStreamsFollowTheLeader", Statements: []string{"S1-04"},
		},
		{
			Name: "stream-writes-are-not-awaited", Mistake: "a term that ends while a report is being written: it lands after the successor has begun",
			File: serving, Old: "		t.handlers.Wait()\n", New: "", Test: "TestLosingTheLeadWaitsForWrites", Statements: []string{"S1-04"},
		},
		{
			Name: "stream-group-not-looked-at", Mistake: "the user's name without its group: any certificate with a name of this form speaks for a node",
			File: serving, Old: "contract.NodeOfIdentity(leaf.Subject.CommonName, leaf.Subject.Organization)", New: "contract.NodeOfIdentity(leaf.Subject.CommonName, []string{contract.ReporterGroup})",
			Test: "TestStreamsNeedAnIdentity", Statements: []string{"S1-03"},
		},
		{
			Name: "stream-certificate-not-verified", Mistake: "the certificate that a client shows, verified or not",
			File: serving, Old: `len(info.State.VerifiedChains) == 0 {
		return "", expires, status.Error(codes.Unauthenticated, "a certificate of a reporter is required")
	}
	leaf := info.State.VerifiedChains[0][0]`, New: `len(info.State.PeerCertificates) == 0 {
		return "", expires, status.Error(codes.Unauthenticated, "a certificate of a reporter is required")
	}
	leaf := info.State.PeerCertificates[0]`, Test: "TestStreamsNeedAnIdentity", Statements: []string{"S1-03"},
		},
		{
			Name: "stream-outlives-its-certificate", Mistake: "a certificate that is looked at when a stream begins, and never again: it may go on for months",
			File: serving, Old: "	expiry := time.AfterFunc(expires.Sub(s.c.Clock.Now()), ", New: "	expiry := time.AfterFunc(expires.Sub(time.Time{}), ", Test: "TestStreamEndsWithItsCertificate", Statements: []string{"S1-03"},
		},
		{
			Name: "stream-certificate-optional", Mistake: "a listener that takes a certificate if there is one",
			File: "aggregator/command/stream.go", Old: "tls.RequireAndVerifyClientCert", New: "tls.VerifyClientCertIfGiven", Test: "TestStreamTLS", Statements: []string{"S1-03"},
		},
		{
			Name: "stream-status-is-sent", Mistake: "a configuration that is made of the whole object: each reporter learns which nodes are broken",
			File: serving, Old: `unstructured.NestedStringSlice(health.Object, "spec", "keyIDs")`, New: `unstructured.NestedStringSlice(health.Object, "status", "readyNodes")`, Test: "TestStatusIsNotSent", Statements: []string{"S1-09"},
		},
		{
			Name: "stream-idle-connections-kept", Mistake: "no bound for a connection without a stream: a client with a certificate can hold as many connections as the aggregator has file descriptors",
			File: bounds, Old: ", MaxConnectionIdle: idleTimeout", New: "", Test: "TestIdleConnectionsEnd", Statements: []string{"S1-10"},
		},
		{
			Name: "stream-handshake-awaited", Mistake: "gRPC's own time for a handshake, two minutes: who shows no certificate holds a connection for as long",
			File: bounds, Old: ", grpc.ConnectionTimeout(handshakeTimeout)", New: "", Test: "TestHandshakesEnd",
		},
		{
			Name: "stream-pings-answered", Mistake: "a keepalive policy that permits everything, against complaints of clients: each can keep the aggregator busy with pings",
			File: bounds, Old: "{MinTime: clientPing}", New: "{MinTime: clientPing / 1e6, PermitWithoutStream: true}", Test: "TestPingsAreBounded",
		},
		{
			Name: "stream-headers-unbounded", Mistake: "gRPC's own bound of headers, 16 MB: nothing in them is read, and all of them is kept",
			File: bounds, Old: ", grpc.MaxHeaderListSize(maxHeaderBytes)", New: "", Test: "TestHeadersAreBounded",
		},
	}
}

package plugin

import (
	"golang.org/x/net/http2"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
)

// transport has the checks on which those of Status depend.
func transport() []Check {
	return []Check{
		{Check: conformance.Check{
			ID: Connects, Profile: conformance.Core,
			Title:       "accepts gRPC connections",
			Rule:        "The plugin serves gRPC, that is HTTP/2 without TLS, on its unix socket.",
			Source:      sourceDocs + ": a gRPC server that listens at a UNIX domain socket; " + sourceClient + ": NewGRPCService dials with insecure credentials",
			Consequence: "No call of kube-apiserver succeeds: each waits for a connection and ends with DeadlineExceeded.",
		}, Run: connects},
		{Check: conformance.Check{
			ID: "KMS2-TRANSPORT-AUTHORITY", Profile: conformance.Core,
			Title:       ":authority localhost is accepted",
			Rule:        "The plugin answers calls with the :authority \"localhost\".",
			Source:      sourceClient + ": NewGRPCService, grpc.WithAuthority(\"localhost\")",
			Consequence: "Every call of kube-apiserver fails.",
		}, After: []string{Connects}, Run: authorityAccepted},
	}
}

// wires has the checks of connections, and of the protocol below the methods. They need a plugin that answers Status.
func wires() []Check {
	return []Check{
		{Check: conformance.Check{
			ID: SecondConnection, Profile: conformance.Extended,
			Title:       "several connections at once",
			Rule:        "The plugin serves a further connection while others are open.",
			Source:      sourceConfig + ": kmsPrefixTransformer opens a connection for each configuration, and a reload closes the old ones only after a grace period",
			Consequence: "A reload of the EncryptionConfiguration fails, because the new configuration never becomes healthy, and the old one stays in use.",
		}, After: []string{StatusAnswers}, Run: secondConnection},
		{Check: conformance.Check{
			ID: "KMS2-STATUS-SAME-ON-EACH-CONNECTION", Profile: conformance.Extended,
			Title:       "each connection sees one key_id",
			Rule:        "Status returns the same key_id on each connection.",
			Source:      sourceKEP + ": the key_id of Status is authoritative for the plugin",
			Consequence: "After each reconnect kube-apiserver takes the key for rotated, and all stored objects become stale.",
		}, After: []string{SecondConnection, "KMS2-STATUS-KEY-ID-CONSTANT"}, Run: withStatus(statusSameEverywhere)},
		{Check: conformance.Check{
			ID: "KMS2-TRANSPORT-SOCKET-PERMISSIONS", Profile: conformance.Robustness,
			Title:       "others cannot use the socket",
			Rule:        "Not every user of the machine can connect to the socket: its mode, or that of a folder above it, denies it to others.",
			Source:      sourceDocs + ": a socket file has an ACL, unlike an abstract socket; unix(7): to connect takes write permission on the socket and search permission on its folders",
			Consequence: "kube-apiserver does not notice. Every local user can call Decrypt, with what is in etcd or in its backups.",
			Needs:       []conformance.Capability{SocketFile},
		}, Run: socketPermissions},
		{Check: conformance.Check{
			ID: "KMS2-TRANSPORT-AUTHORITY-OTHER", Profile: conformance.Robustness,
			Title:       "another :authority gets an answer",
			Rule:        "A call with another :authority than localhost is answered or refused, within the timeout of a call.",
			Source:      "RFC 9113, 8.3.1: the server serves the request for the :authority, or refuses it (8.1.1)",
			Consequence: "Health probes and debugging tools, which send other names than kube-apiserver, hang.",
		}, After: []string{SecondConnection}, Run: otherAuthority},
		{Check: conformance.Check{
			ID: idle, Profile: conformance.Robustness,
			Title:       "an idle connection blocks nobody",
			Rule:        "A connection on which nothing is sent does not delay others.",
			Source:      sourceDocs + ": timeout, by default 3 s, for each call, whatever other clients of the socket do",
			Consequence: "A client that opens the socket and sends nothing, such as a probe that only connects, stops all encryption.",
		}, After: []string{SecondConnection}, Run: written("an idle connection", "")},
		foreign("KMS2-TRANSPORT-GARBAGE", "garbage is refused", "bytes that are not HTTP/2", func(p *Plugin) string {
			b := p.Bytes(1024)
			b[0] = 0xff // what no protocol begins with
			return string(b)
		}),
		foreign("KMS2-TRANSPORT-HTTP1", "an HTTP/1.1 request is refused", "an HTTP/1.1 request", func(*Plugin) string {
			return "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
		}),
		partial("KMS2-TRANSPORT-HALF-PREFACE", "half a preface blocks nobody", "half of the HTTP/2 preface", http2.ClientPreface[:len(http2.ClientPreface)/2]),
		partial("KMS2-TRANSPORT-HALF-FRAME", "half a frame blocks nobody", "half of an HTTP/2 frame", halfFrame),
		{Check: conformance.Check{
			ID: "KMS2-TRANSPORT-ABANDONED-REQUEST", Profile: conformance.Robustness,
			Title:       "an incomplete request blocks nobody",
			Rule:        "A call whose request never arrives does not delay others, neither on its connection nor on others.",
			Source:      "RFC 9113, 5: the streams of a connection are independent; " + sourceDocs + ": timeout, by default 3 s, for each call",
			Consequence: "kube-apiserver's calls wait for a request that never comes, and end with DeadlineExceeded.",
		}, After: []string{SecondConnection}, Run: withFrames(abandonedRequest)},
		{Check: conformance.Check{
			ID: "KMS2-TRANSPORT-DROPPED-CONNECTION", Profile: conformance.Extended,
			Title:       "a dropped connection harms nobody",
			Rule:        "When a client closes its connection in mid-call, the plugin goes on serving others.",
			Source:      sourceClient + ": NewGRPCService closes the connection when its context ends, at a reload and at the end of kube-apiserver",
			Consequence: "A restart of kube-apiserver, or a reload of its EncryptionConfiguration, ends the plugin for everybody.",
		}, After: []string{SecondConnection}, Run: droppedConnection},
		{Check: conformance.Check{
			ID: "KMS2-TRANSPORT-PING", Profile: conformance.Extended,
			Title:       "pings are answered",
			Rule:        "The plugin acknowledges an HTTP/2 PING.",
			Source:      "RFC 9113, 6.7: a PING without the flag ACK must be answered with one",
			Consequence: "kube-apiserver's gRPC client cannot estimate its window; one with keepalive takes the connection for dead and drops its calls.",
		}, After: []string{SecondConnection}, Run: withFrames(ping)},
		{Check: conformance.Check{
			ID: "KMS2-TRANSPORT-PINGS-WITH-CALLS", Profile: conformance.Extended,
			Title:       "a ping with each call is tolerated",
			Rule:        "The plugin does not close a connection because of one PING for each call.",
			Source:      "google.golang.org/grpc/internal/transport/bdp_estimator.go: kube-apiserver's client sends a PING when data arrives; gRFC A8: pings count as abuse only without data",
			Consequence: "The connection closes with GOAWAY too_many_pings, and kube-apiserver's calls on it fail.",
		}, After: []string{"KMS2-TRANSPORT-PING"}, Run: withFrames(pingsWithCalls)},
		unimplemented("KMS2-TRANSPORT-UNKNOWN-METHOD", "an unknown method is unimplemented", "method", "/"+kmsapi.KeyManagementService_ServiceDesc.ServiceName+"/NoSuchMethod"),
		unimplemented("KMS2-TRANSPORT-UNKNOWN-SERVICE", "an unknown service is unimplemented", "service", "/conformance.NoSuchService/Call"),
		{Check: conformance.Check{
			ID: "KMS2-TRANSPORT-UNKNOWN-FIELDS", Profile: conformance.Extended,
			Title:       "unknown fields are ignored",
			Rule:        "Status answers a request with fields that the plugin does not know.",
			Source:      "protobuf.dev/programming-guides/proto3: unknown fields are well formed, and a parser accepts them; " + sourceProto,
			Consequence: "A kube-apiserver whose API has one more field cannot use the plugin.",
		}, After: []string{StatusAnswers}, Run: unknownFields},
		{Check: conformance.Check{
			ID: "KMS2-TRANSPORT-TRACE-METADATA", Profile: conformance.Robustness,
			Title:       "trace metadata is accepted",
			Rule:        "A call with the metadata of a trace (traceparent, tracestate of 512 bytes) is answered.",
			Source:      "gRPC, doc/PROTOCOL-HTTP2.md: Custom-Metadata is arbitrary, servers should accept 8 KiB of it; W3C Trace Context, 3.3.1.5",
			Consequence: "kube-apiserver sends none today. An instrumented client or proxy cannot use the plugin.",
		}, After: []string{StatusAnswers}, Run: traceMetadata},
		{Check: conformance.Check{
			ID: "KMS2-TRANSPORT-LARGE-METADATA", Profile: conformance.Robustness,
			Title:       "large metadata harms nobody",
			Rule:        "A call with 64 KiB of metadata is answered or refused, and the plugin serves others.",
			Source:      "gRPC, doc/PROTOCOL-HTTP2.md: servers may limit the size of Request-Headers",
			Consequence: "One client with large metadata ends the plugin for kube-apiserver.",
		}, After: []string{SecondConnection}, Run: largeMetadata},
		{Check: conformance.Check{
			ID: "KMS2-TRANSPORT-COMPRESSED", Profile: conformance.Robustness,
			Title:       "compression is served or unimplemented",
			Rule:        "A request that is compressed with gzip is answered, or ends with the code Unimplemented.",
			Source:      "gRPC, doc/compression.md: an algorithm that the server does not support is UNIMPLEMENTED",
			Consequence: "kube-apiserver does not compress. Another client cannot find out that it must not.",
		}, After: []string{SecondConnection}, Run: compressed},
		{Check: conformance.Check{
			ID: "KMS2-TRANSPORT-BIG-REQUEST", Profile: conformance.Robustness,
			Title:       "a big request harms nobody",
			Rule:        "A request of 1 MiB or 5 MiB is answered or refused, and the plugin serves others.",
			Source:      "gRPC: a server limits the size of messages, by default to 4 MiB, and refuses larger ones with RESOURCE_EXHAUSTED",
			Consequence: "One client that sends too much ends the plugin for kube-apiserver.",
		}, After: []string{SecondConnection}, Run: bigRequest},
	}
}

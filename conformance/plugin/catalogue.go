package plugin

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"golang.org/x/net/http2"
	kmsapi "k8s.io/kms/apis/v2"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/conformance"
)

// Check is one rule for a plugin, and how to test it.
type Check struct {
	conformance.Check
	// After are ids of checks without whose success this one can show nothing. If one of them failed, this check is blocked.
	After []string `json:"after,omitempty"`
	// Waits reports whether the check waits on purpose: it watches for a period, or until something becomes visible.
	Waits bool `json:"waits,omitempty"`
	// Run judges the rule.
	Run JudgeFunc `json:"-"`
}

// JudgeFunc returns nil if the plugin keeps a rule. A *conformance.Finding has the evidence of a broken rule; any other error is a broken rule too, with
// its text as evidence; must ends it with either. It leaves the plugin as it found it.
type JudgeFunc = func(ctx context.Context, p *Plugin) error

//go:embed catalogue.yaml
var table []byte // go:embed needs a variable

// Catalogue lists all checks, in the order in which they run.
func Catalogue() []Check {
	var t struct {
		Checks []Check `json:"checks"`
	}
	if err := yaml.UnmarshalStrict(table, &t); err != nil {
		panic(fmt.Sprintf("catalogue.yaml: %v", err)) // it is part of the program
	}
	for i := range t.Checks {
		t.Checks[i].Run = judges[t.Checks[i].ID]
	}
	return t.Checks
}

// Rules are checks without their functions.
func Rules(checks []Check) (rules []conformance.Check) {
	for _, c := range checks {
		rules = append(rules, c.Check)
	}
	return rules
}

// judges has the function of each check in catalogue.yaml, by id.
var judges = map[string]JudgeFunc{
	"KMS2-TRANSPORT-CONNECTS":  connects,
	"KMS2-TRANSPORT-AUTHORITY": authorityAccepted,

	"KMS2-STATUS-ANSWERS":          statusAnswers,
	"KMS2-STATUS-HEALTHZ-OK":       statusHas(`healthz "ok"`, func(r *kmsapi.StatusResponse) bool { return r.Healthz == "ok" }),
	"KMS2-STATUS-HEALTHZ-CONSTANT": constant("healthz", (*kmsapi.StatusResponse).GetHealthz),
	"KMS2-STATUS-VERSION":          statusHas(`version "v2" or "v2beta1"`, func(r *kmsapi.StatusResponse) bool { return r.Version == "v2" || r.Version == "v2beta1" }),
	"KMS2-STATUS-VERSION-CONSTANT": constant("version", (*kmsapi.StatusResponse).GetVersion),
	"KMS2-STATUS-KEY-ID-PRESENT":   statusHas("a key_id", func(r *kmsapi.StatusResponse) bool { return r.KeyId != "" }),
	"KMS2-STATUS-KEY-ID-SIZE":      statusHas(fmt.Sprintf("a key_id of at most %d bytes", maxKeyID), func(r *kmsapi.StatusResponse) bool { return len(r.KeyId) <= maxKeyID }),
	"KMS2-STATUS-KEY-ID-CONSTANT":  constant("key_id", (*kmsapi.StatusResponse).GetKeyId),
	"KMS2-STATUS-KEY-ID-STABLE":    withStatus(statusKeyIDStable),
	"KMS2-STATUS-KEY-ID-PRINTABLE": statusHas("a key_id without control characters and without white space around it", printable),

	"KMS2-TRANSPORT-SECOND-CONNECTION":    secondConnection,
	"KMS2-STATUS-SAME-ON-EACH-CONNECTION": withStatus(statusSameEverywhere),
	"KMS2-TRANSPORT-SOCKET-PERMISSIONS":   socketPermissions,
	"KMS2-TRANSPORT-AUTHORITY-OTHER":      otherAuthority,
	"KMS2-TRANSPORT-IDLE-CONNECTION":      written("an idle connection", ""),
	"KMS2-TRANSPORT-GARBAGE":              garbage,
	"KMS2-TRANSPORT-HTTP1":                written("a connection with an HTTP/1.1 request", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	"KMS2-TRANSPORT-HALF-PREFACE":         written("a connection with half of the HTTP/2 preface", http2.ClientPreface[:len(http2.ClientPreface)/2]),
	"KMS2-TRANSPORT-HALF-FRAME":           written("a connection with half of an HTTP/2 frame", halfFrame),
	"KMS2-TRANSPORT-ABANDONED-REQUEST":    withFrames(abandonedRequest),
	"KMS2-TRANSPORT-DROPPED-CONNECTION":   droppedConnection,
	"KMS2-TRANSPORT-PING":                 withFrames(ping),
	"KMS2-TRANSPORT-PINGS-WITH-CALLS":     withFrames(pingsWithCalls),
	"KMS2-TRANSPORT-UNKNOWN-METHOD":       unimplemented("/" + kmsapi.KeyManagementService_ServiceDesc.ServiceName + "/NoSuchMethod"),
	"KMS2-TRANSPORT-UNKNOWN-SERVICE":      unimplemented("/conformance.NoSuchService/Call"),
	"KMS2-TRANSPORT-UNKNOWN-FIELDS":       unknownFields,
	"KMS2-TRANSPORT-TRACE-METADATA":       traceMetadata,
	"KMS2-TRANSPORT-LARGE-METADATA":       largeMetadata,
	"KMS2-TRANSPORT-COMPRESSED":           compressed,
	"KMS2-TRANSPORT-BIG-REQUEST":          bigRequest,

	"KMS2-ENCRYPT-ANSWERS":              encryptAnswers,
	"KMS2-ENCRYPT-CIPHERTEXT-PRESENT":   encryptHas("a ciphertext of 1 to 1024 bytes", func(s Sealed) bool { return len(s.Ciphertext) > 0 }),
	"KMS2-ENCRYPT-CIPHERTEXT-SIZE":      withSealed(ciphertextSize),
	"KMS2-ENCRYPT-KEY-ID-PRESENT":       encryptHas("the key_id of Status", func(s Sealed) bool { return s.KeyId != "" }),
	"KMS2-ENCRYPT-KEY-ID-SIZE":          encryptHas("a key_id of 1 to 1024 bytes", func(s Sealed) bool { return len(s.KeyId) <= maxKeyID }),
	"KMS2-ENCRYPT-KEY-ID-EQUALS-STATUS": withStatus(encryptKeyIDEqualsStatus),
	"KMS2-ENCRYPT-ANNOTATION-KEYS":      withSealed(annotationKeys),
	"KMS2-ENCRYPT-ANNOTATION-SIZE":      withSealed(annotationSize),
	"KMS2-ENCRYPT-ROUND-TRIP":           envelopeRoundTrip,
	"KMS2-ENCRYPT-EDGE-BYTES":           envelopeEdgeBytes,
	"KMS2-ENCRYPT-DISTINCT":             envelopeDistinct,
	"KMS2-ENCRYPT-CIPHERTEXT-HIDES":     withSealed(ciphertextHides),
	"KMS2-ENCRYPT-CIPHERTEXT-KEYSTREAM": ciphertextKeystream,
	"KMS2-ENCRYPT-ANNOTATIONS-HIDE":     withSealed(annotationsHide),
	"KMS2-ENCRYPT-KEY-ID-STABLE":        withStatus(encryptKeyIDStable),
	"KMS2-ENCRYPT-SAME-PLAINTEXT":       envelopeSamePlaintext,
	"KMS2-DECRYPT-REPEATED":             withSealed(decryptRepeated),
	"KMS2-DECRYPT-ANY-ORDER":            decryptAnyOrder,
	"KMS2-DECRYPT-OTHER-CONNECTION":     withSealed(decryptOtherConnection),
	"KMS2-DECRYPT-LATER":                withSealed(decryptLater),
	"KMS2-DECRYPT-AFTER-STATUS":         withSealed(decryptAfterStatus),
	"KMS2-ENCRYPT-UID-REUSED":           envelopeUIDReused,
	"KMS2-ENCRYPT-UNIFORM-BYTES":        envelopeUniformBytes,
	"KMS2-ENCRYPT-TEXT-BYTES":           envelopeTextBytes,
	"KMS2-ENCRYPT-PLAINTEXT-EMPTY":      plaintextEmpty,
	"KMS2-ENCRYPT-PLAINTEXT-SMALL":      tryPlaintexts(1, 15, 16, 17, 31),
	"KMS2-ENCRYPT-PLAINTEXT-LARGE":      tryPlaintexts(33, 48, 64, 255, 256),
	"KMS2-ENCRYPT-PLAINTEXT-GROWING":    tryPlaintexts(512, 1<<10, 4<<10, 16<<10, 64<<10),

	"KMS2-HOSTILE-STATUS":               withSealed(hostileStatus),
	"KMS2-HOSTILE-GARBAGE":              withSealed(hostileGarbage),
	"KMS2-HOSTILE-CIPHERTEXT-EMPTY":     withSealed(hostileCiphertextEmpty),
	"KMS2-HOSTILE-CIPHERTEXT-TRUNCATED": withSealed(hostileCiphertextTruncated),
	"KMS2-HOSTILE-CIPHERTEXT-EXTENDED":  withSealed(hostileCiphertextExtended),
	"KMS2-HOSTILE-CIPHERTEXT-FLIPPED":   withSealed(hostileCiphertextFlipped),
	"KMS2-HOSTILE-CIPHERTEXT-SPLICED":   withSealed(hostileCiphertextSpliced),
	"KMS2-HOSTILE-KEY-ID-UNKNOWN":       hostileKeyIDs(unknownKeyIDs),
	"KMS2-HOSTILE-KEY-ID-MISSING":       hostileKeyIDs(func(*Plugin, string) []string { return []string{""} }),
	"KMS2-HOSTILE-KEY-ID-HUGE":          hostileKeyIDs(func(*Plugin, string) []string { return []string{strings.Repeat("k", 1025), strings.Repeat("k", 2<<20)} }),
	"KMS2-HOSTILE-ANNOTATIONS-MISSING":  hostileAnnotations(annotationsMissing),
	"KMS2-HOSTILE-ANNOTATIONS-ALTERED":  hostileAnnotations(annotationsAltered),
	"KMS2-HOSTILE-ANNOTATIONS-SWAPPED":  withSealed(annotationsSwapped),
	"KMS2-HOSTILE-ANNOTATIONS-EXTRA":    hostileAnnotations(annotationsExtra),
	"KMS2-HOSTILE-UID-MISSING":          hostileUIDs(""),
	"KMS2-HOSTILE-UID-MALFORMED": hostileUIDs(
		"not a uuid", "00000000-0000-0000-0000-00000000000g", "line 1\nline 2\r\n\x00\x1b[31m", "../../../../etc/passwd", "%s%n%d{}${x}", strings.Repeat("u", 1<<20)),
	"KMS2-HOSTILE-PLAINTEXT-HUGE":    tryPlaintexts(1<<20, grpcLimitBytes-1<<10),
	"KMS2-HOSTILE-MESSAGE-OVERSIZED": withSealed(hostileMessageOversized),
	"KMS2-PROTO-UNKNOWN-FIELDS":      withSealed(protoUnknownFields),
	"KMS2-PROTO-FIELD-ORDER":         withSealed(protoFieldOrder),
	"KMS2-PROTO-DUPLICATED":          withSealed(protoDuplicated),
	"KMS2-PROTO-TRUNCATED":           withSealed(protoTruncated),
	"KMS2-PROTO-WRONG-TYPES":         protoWrongTypes,
	"KMS2-PROTO-INVALID-UTF8":        withSealed(protoInvalidUTF8),
	"KMS2-PROTO-EMPTY":               protoEmpty,
	"KMS2-HOSTILE-KEEPS-SERVING":     withSealed(hostileKeepsServing),
	"KMS2-HOSTILE-STATUS-STAYS":      statusAfterRefusals,

	"KMS2-LOAD-STATUS-POLLED":       statusPolled,
	"KMS2-LOAD-SEQUENTIAL":          sequential,
	"KMS2-LOAD-NO-MIX-UP":           noMixUp,
	"KMS2-LOAD-CONCURRENT-10":       concurrent(10),
	"KMS2-LOAD-CONCURRENT-100":      concurrent(100),
	"KMS2-LOAD-CONCURRENT-200":      concurrent(200),
	"KMS2-LOAD-KEY-ID-STEADY":       keyIDUnderLoad,
	"KMS2-LOAD-STATUS-WITH-ENCRYPT": statusUnderLoad,
	"KMS2-LOAD-LOG-INS":             logInsDoNotGrow,
	"KMS2-LOAD-CANCELLED-CALLS":     endEarly("cancelled", cancelled),
	"KMS2-LOAD-EXPIRED-DEADLINE":    withFrames(expiredDeadline),
	"KMS2-LOAD-SHORT-DEADLINES":     endEarly("with a deadline of 1 ms to 10 ms", withShortDeadline),
	"KMS2-LOAD-SLOW-READER":         slowReader,
	"KMS2-LOAD-CONNECTION-CHURN":    churn,
	"KMS2-LOAD-OPEN-CONNECTIONS":    openConnections,
	"KMS2-LOAD-CONNECTIONS-FREED":   closedConnections,
	"KMS2-LOAD-DESCRIPTORS-STEADY":  resource{what: "open descriptors", calls: 2000, callers: 2, least: 10, above: 0.01, read: countDescriptors}.judge,
	"KMS2-LOAD-THREADS-STEADY":      resource{what: "threads", calls: 2000, callers: 2, least: 10, above: 0.01, read: fromStatus("Threads")}.judge,
	// 512 bytes for each call: at a poll every 20 s these are 800 MB in a year.
	"KMS2-LOAD-MEMORY-STEADY": resource{what: "kB of resident memory", calls: 100_000, callers: 32, least: 8 << 10, above: 0.5, read: fromStatus("VmRSS")}.judge,

	"KMS2-DECRYPT-OTHER-INSTANCE": oneKeyIDOneKey,

	"KMS2-STATUS-KEY-ID-AFTER-CALLS": withStatus(statusKeyIDAfterCalls),
	"KMS2-ROTATION-NOTICED":          rotationNoticed,
	"KMS2-ROTATION-ENCRYPT-FOLLOWS":  rotationEncryptFollows,
	"KMS2-ROTATION-OLD-DECRYPTS":     rotationOldDecrypts,
	"KMS2-ROTATION-NO-RETURN":        rotationNoReturn,
	"KMS2-ROTATION-NEW-ID":           rotationNewID,
	"KMS2-ROTATION-SERVES":           withStatus(rotationServes),
	"KMS2-ROTATION-TEARS-NOTHING":    rotationTearsNothing,

	"KMS2-HONESTY-FAIL-VISIBLE":            failureVisible(ModeFail),
	"KMS2-HONESTY-FAIL-STATUS-IN-TIME":     statusInTime(ModeFail),
	"KMS2-HONESTY-FAIL-KEY-ID":             withStatus(keyIDWhileBroken(ModeFail)),
	"KMS2-HONESTY-FAIL-RECOVERS":           recovers(ModeFail),
	"KMS2-HONESTY-HANG-VISIBLE":            failureVisible(ModeHang),
	"KMS2-HONESTY-HANG-STATUS-IN-TIME":     statusInTime(ModeHang),
	"KMS2-HONESTY-HANG-KEY-ID":             withStatus(keyIDWhileBroken(ModeHang)),
	"KMS2-HONESTY-HANG-RECOVERS":           recovers(ModeHang),
	"KMS2-HONESTY-REFUSE-VISIBLE":          failureVisible(ModeRefuse),
	"KMS2-HONESTY-REFUSE-STATUS-IN-TIME":   statusInTime(ModeRefuse),
	"KMS2-HONESTY-REFUSE-KEY-ID":           withStatus(keyIDWhileBroken(ModeRefuse)),
	"KMS2-HONESTY-REFUSE-RECOVERS":         recovers(ModeRefuse),
	"KMS2-HONESTY-LOSE-KEY-VISIBLE":        failureVisible(ModeLoseKey),
	"KMS2-HONESTY-LOSE-KEY-STATUS-IN-TIME": statusInTime(ModeLoseKey),
	"KMS2-HONESTY-LOSE-KEY-KEY-ID":         withStatus(keyIDWhileBroken(ModeLoseKey)),
	"KMS2-HONESTY-LOSE-KEY-RECOVERS":       recovers(ModeLoseKey),
	"KMS2-HONESTY-NO-FALSE-SUCCESS":        noFalseSuccess,
	"KMS2-HONESTY-DATA-SURVIVES":           withSealed(dataAfterFailure),
	"KMS2-HONESTY-SLOW-STATUS-IN-TIME":     statusWhileSlow,
	"KMS2-HONESTY-SLOW-RECOVERS":           recovers(ModeSlow),

	"KMS2-LIFECYCLE-RESTART-AFTER-SIGTERM":      restartAfterStop,
	"KMS2-LIFECYCLE-STOPS":                      withStatus(stops),
	"KMS2-LIFECYCLE-KEY-ID-AFTER-RESTART":       withStatus(keyIDAfterRestart),
	"KMS2-LIFECYCLE-WAITING-CALL":               waitingCall,
	"KMS2-LIFECYCLE-DATA-AFTER-SIGTERM":         dataAfter("SIGTERM", (*ownProcess).end),
	"KMS2-LIFECYCLE-RESTART-AFTER-SIGKILL":      restartAfterKill,
	"KMS2-LIFECYCLE-DATA-AFTER-SIGKILL":         dataAfter("SIGKILL", (*ownProcess).Kill),
	"KMS2-LIFECYCLE-CALL-AT-STOP":               callAtStop,
	"KMS2-LIFECYCLE-KILLED-IN-MID-CALL":         killInMidCall,
	"KMS2-LIFECYCLE-STOPS-WITH-IDLE-CONNECTION": stopsWithIdleConnection,
	"KMS2-LIFECYCLE-TEN-RESTARTS":               manyRestarts,
	"KMS2-LIFECYCLE-HAND-OVER":                  handOver,
	"KMS2-LIFECYCLE-FAILED-START":               failedStart,
	"KMS2-LIFECYCLE-START-WITHOUT-KMS":          afterwards(startWithoutKMS),
	"KMS2-LIFECYCLE-START-WITHOUT-KMS-NOT-OK":   afterwards(startWithoutKMSNotOK),
	"KMS2-LIFECYCLE-START-WITHOUT-KMS-KEY-ID":   afterwards(withStatus(startWithoutKMSKeyID)),
	"KMS2-LIFECYCLE-KEY-ID-OTHER-ADDRESS":       keyIDAtOtherAddress,

	"KMS2-SECRECY-LOG-PLAINTEXT":     logPlaintext,
	"KMS2-SECRECY-LOG-CREDENTIALS":   logCredentials,
	"KMS2-SECRECY-ERROR-PLAINTEXT":   errorPlaintext,
	"KMS2-SECRECY-ERROR-CREDENTIALS": errorCredentials,
	"KMS2-SECRECY-KEY-ID":            keyIDCredentials,
	"KMS2-SECRECY-KEY-ID-ADDRESS":    withStatus(keyIDHasNoAddress),
}

package live

import "strings"

// Placeholders are what a command template may contain.
func Placeholders() []string {
	return []string{"sockets", "node", "kubeconfig", "interval", "jitter", "readTimeout", "writeTimeout", "metricsAddress",
		"contract", "operator", "version", "podImage", "connectivity", "instance", "leaderElect", "degradedInertia", "clusterOperator",
		"publish", "aggregators", "streamAddress", "streamCertificate", "streamKey", "streamClientCA"}
}

// The commands of this project's own reporter, aggregator and operator.
const (
	DefaultReporter = "kms-health-reporter --kms-sockets={sockets} --node-name={node} --kubeconfig={kubeconfig}" +
		" --interval={interval} --jitter={jitter} --read-timeout={readTimeout} --write-timeout={writeTimeout}" +
		" --metrics-address={metricsAddress} --contract={contract} --operator={operator} --connectivity={connectivity}"
	DefaultAggregator = "kms-health-aggregator --kubeconfig={kubeconfig} --interval={interval} --operator={operator}" +
		" --metrics-address={metricsAddress} --leader-elect={leaderElect} --leader-elect-identity={instance}" +
		" --leader-elect-lease-duration=2s --leader-elect-renew-deadline=1500ms --leader-elect-retry-period=250ms" +
		" --degraded-inertia={degradedInertia} --cluster-operator={clusterOperator}"
	// DefaultOperator is the command of this project's operator, with the times that scenarios are written for.
	DefaultOperator = "encryption-operator --kubeconfig={kubeconfig} --interval={interval} --settle=30s --retry=2s --keep=3"
	// What they are given besides, where reporters stream.
	StreamingReporter   = " --publish={publish} --aggregators={aggregators}"
	StreamingAggregator = " --stream-address={streamAddress} --stream-certificate={streamCertificate} --stream-key={streamKey}" +
		" --stream-client-ca={streamClientCA} --stream-contract={contract}"
)

func orDefault(text, fallback string) string {
	if strings.TrimSpace(text) == "" {
		return fallback
	}
	return text
}
